"""Cases beside a contract: recorded exchanges, each read by the functions that production reads with, and what each must mean."""
