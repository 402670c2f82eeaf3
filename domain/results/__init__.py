"""What a result is: measured while it passes, checked against what was offered, its items counted, its parts named and joined."""
