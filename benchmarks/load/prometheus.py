"""A real Prometheus with the files of deploy/prometheus that scrapes a deployment."""

import json
import math
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.end_to_end.deployment import PROJECT, eventually
from tests.servers.nginx import free_ports

FILES = PROJECT / "deploy" / "prometheus"
# Tries of a request to it, each of which may take 30 seconds.
TRIES = 10
PROMETHEUS, PROMTOOL = (shutil.which(name) for name in ("prometheus", "promtool"))


class Prometheus:
    """Prometheus whose rules wait for a second instead of minutes."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self._target = folder, target
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"

    @contextmanager
    def running(self) -> Iterator["Prometheus"]:
        """Check the shipped files, and scrape every second during the block."""
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
            eventually(self._is_ready, "Prometheus does not start")
            eventually(lambda: self.query("konstruct_server_up"), "Prometheus has no figures")
            yield self
        finally:
            process.terminate()
            process.wait(60)

    def query(self, expression: str) -> list[Any]:
        """Return the time series of an expression."""
        return list(self._data("query", query=expression)["result"])

    def firing(self) -> set[tuple[str, str]]:
        """Return the firing alerts, each with the process or server that it names."""
        return {
            (alert["labels"]["alertname"], alert["labels"].get("process", ""))
            for alert in self._data("alerts")["alerts"]
            if alert["state"] == "firing"
        }

    def panels_without_data(self) -> list[str]:
        """Return the queries of deploy/grafana that have no number, with their panels."""
        return [
            f"{path.stem}: {panel['title']} has no data: {target['expr']}"
            for path in sorted((PROJECT / "deploy" / "grafana").glob("*.json"))
            for panel in json.loads(path.read_text())["panels"]
            for target in panel["targets"]
            if not any(
                math.isfinite(float(series["value"][1]))
                for series in self.query(target["expr"].replace("$__rate_interval", "5m"))
            )
        ]

    def _is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/-/ready", timeout=30).is_success
        return False

    def _data(self, path: str, **parameters: str) -> Any:
        """Send the query; repeat it if a busy machine answers too late."""
        for tried in range(TRIES):
            with suppress(httpx.TransportError) if tried < TRIES - 1 else nullcontext():
                answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30)
                document = answer.json()
                assert document["status"] == "success", (path, parameters, document)
                return document["data"]
            time.sleep(1)
        raise AssertionError
