"""What several benchmarks need: data sets, a tenant to throw away, an earlier version, proxies."""
