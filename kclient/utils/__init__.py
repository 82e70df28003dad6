"""Small tools every layer uses: time, backoff, futures, threads, logging context, fork guard."""
