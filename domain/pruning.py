"""What is taken away once an operation is final: whatever was kept apart because it is, or holds, something sensitive.

* It is taken away in the transaction that makes the operation final, or that ends what a final one still had to do; what comes later (a
  late answer) is taken away with the entry that names it.
* The record of it, `pruned`, names the bytes by their digests: `verify` says *erased*, not tampered.
"""

from domain.evidence import CreateExchange, Evidence, Intent, Late, Observation, Pruned, Ref, RequestFacts, StepOutcome
from domain.lifecycle import next_step
from domain.standing import Standing


def pruning(standing: Standing, last: Evidence) -> Pruned | None:
    """What is due after `last` led to this standing."""
    if not standing.apart or not standing.final or next_step(standing).name != "done":
        return None
    return Pruned(at=last.at, actor=last.actor, refs=standing.apart)


def kept_apart(standing: Standing, evidence: Evidence) -> dict[str, object]:
    """What holds sensitive values: hidden ones, answers that were kept whole, what steps saved, and requests made of any of these."""
    if isinstance(evidence, Pruned):
        gone = set(evidence.refs)
        return {
            "sensitive": tuple(one for one in standing.sensitive if one not in gone),
            "apart": tuple(one for one in standing.apart if one not in gone),
        }
    hidden = None if evidence.sensitive is None else evidence.sensitive.digest
    refs = [hidden]
    match evidence:
        case CreateExchange(observed=Ref(digest=digest)) | Late(observed=Ref(digest=digest)) | Observation(observed=Ref(digest=digest)):
            refs.append(digest)
        case StepOutcome(saved=Ref(digest=digest)):
            refs.append(digest)
        case Intent(request=RequestFacts(ref=digest)) if evidence.meaning != "create" or standing.steps:
            refs.append(digest)
        case _:
            pass
    apart = tuple(dict.fromkeys((*standing.apart, *(one for one in refs if one is not None))))
    return {"apart": apart, "sensitive": standing.sensitive if hidden is None else tuple(dict.fromkeys((*standing.sensitive, hidden)))}
