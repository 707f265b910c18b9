"""The examples of docs/how-to/integrations.md, word for word, with the frameworks of PyPI: each asks before a tool runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.fakes.installed_programs import KEY, PROGRAMS
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene

PYTHON = PROGRAMS / "frameworks" / "bin" / "python"
PAGE = ROOT / "docs" / "how-to" / "integrations.md"


def example(title: str) -> str:
    """The code below a heading."""
    (text,) = re.findall(rf"^## {title}\n.*?^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.mark.parametrize("title", ["OpenAI Agents SDK", "pydantic-ai"])
def test_an_example_asks_before_its_tool_runs(state_dir: Path, title: str) -> None:
    if not PYTHON.exists():
        pytest.fail((PROGRAMS / "frameworks.log").read_text()[-2000:], pytrace=False)
    told = [Reply("", (Call("shell", {"command": command}),)) for command in ("ls -d .", "cat /etc/shadow")]
    with ModelServer(Scene("THETASK", *told, Reply("All done."))) as model, Instance(state_dir) as it:
        environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_AGENTS_DISABLE_TRACING": "1", "HOME": "/tmp"}
        code = f"import os\nos.environ.update({environment!r})\n{example(title)}"
        agent = it.launch(str(PYTHON), "-c", code, "THETASK please")
        assert "All done." in it.says(agent, "All done.")
        until(lambda: it.agent(agent).ended_at is not None, words="it ended by itself")
        said = json.dumps(model.asked[-1].body)
        assert "Watchfloor: " in said and "/etc/shadow" in said and "root:" not in said
        assert said.count("Watchfloor: ") == 1, "the first was allowed"
        assert [row.verdict for row in it.api.audit(q="/etc/shadow").rows if row.agent_id == agent][:1] == ["deny"]
    model.check()
