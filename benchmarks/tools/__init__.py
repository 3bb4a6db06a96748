"""Shared code of benchmarks: data sets, a temporary tenant, an earlier version, proxies."""
