"""A real Prometheus with the files of deploy/prometheus, which scrapes a deployment."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.end_to_end.deployment import PROJECT, eventually
from tests.servers.nginx import free_ports

FILES = PROJECT / "deploy" / "prometheus"
PROMETHEUS, PROMTOOL = (shutil.which(name) for name in ("prometheus", "promtool"))


class Prometheus:
    """Prometheus with rules that wait for a second instead of minutes."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self._target = folder, target
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"

    @contextmanager
    def running(self) -> Iterator["Prometheus"]:
        """Check the shipped files, and scrape every second as long as the block lasts."""
        assert PROMETHEUS, "install prometheus (Debian's package)"
        assert PROMTOOL
        shipped = ["check", "config", str(FILES / "prometheus.yml")]
        subprocess.run([PROMTOOL, *shipped], check=True, stdout=subprocess.DEVNULL)
        self.folder.mkdir()
        rules = (FILES / "alerts.yml").read_text()
        (self.folder / "alerts.yml").write_text(re.sub(r"\bfor: \w+", "for: 1s", rules))
        config = yaml.safe_load((FILES / "prometheus.yml").read_text())
        (scrape,) = config["scrape_configs"]
        del scrape["dns_sd_configs"]
        scrape |= {"scrape_interval": "1s", "static_configs": [{"targets": [self._target]}]}
        config["global"] = {"evaluation_interval": "1s"}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    PROMETHEUS,
                    f"--config.file={self.folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self.folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stderr=log,
            )
        try:
            eventually(lambda: self.query("konstruct_server_up"), "Prometheus has no figures")
            yield self
        finally:
            process.terminate()
            process.wait(60)

    def query(self, expression: str) -> list[Any]:
        """Return the time series of an expression."""
        with suppress(httpx.TransportError):
            answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=30)
            if answer.status_code == 503:
                return []  # it is starting
            document = answer.json()
            assert document["status"] == "success", (expression, document)
            return list(document["data"]["result"])
        return []

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire, each with the process or server that it names."""
        alerts = httpx.get(f"{self.url}/api/v1/alerts", timeout=30).json()["data"]["alerts"]
        return {
            (each["labels"]["alertname"], each["labels"].get("process", ""))
            for each in alerts
            if each["state"] == "firing"
        }
