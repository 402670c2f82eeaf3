# The worker and the command line, in one image. Only wheels whose hashes stand in requirements.lock enter it.
FROM python:3.11.15-slim-bookworm AS environment
WORKDIR /build
COPY pyproject.toml requirements.lock ./
# All that the lock names is fetched and compared; of that, what pyproject.toml asks for at run time is installed. Tests stay out.
RUN python -m pip download --quiet --no-cache-dir --require-hashes --only-binary :all: --dest /wheels -r requirements.lock \
 && python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > runtime.txt \
 && python -m venv /opt/sakshi \
 && /opt/sakshi/bin/python -m pip install --quiet --no-cache-dir --no-index --find-links /wheels -r runtime.txt

FROM python:3.11.15-slim-bookworm
# /var/lib/sakshi is where results are mounted; a new volume takes its owner from here.
RUN groupadd --gid 10001 sakshi \
 && useradd --uid 10001 --gid sakshi --no-create-home --home-dir /var/lib/sakshi --shell /usr/sbin/nologin sakshi \
 && install --directory --owner sakshi --group sakshi --mode 0700 /var/lib/sakshi /var/lib/sakshi/results
COPY --from=environment /opt/sakshi /opt/sakshi
WORKDIR /srv/sakshi
COPY . .
ENV PATH=/opt/sakshi/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
HEALTHCHECK --interval=60s --timeout=20s --start-period=30s --retries=3 CMD ["python", "starter.py", "doctor", "--json"]
CMD ["python", "worker.py"]
