"""Reads YAML and JSON: manifests of Kubernetes, compose files, workflows of GitHub, pipelines of GitLab, Spack."""

import re

from busbw.env.reading import commands, shell_commands
from busbw.env.reading.context import NAME, Context, Known, Scope
from busbw.env.reading.in_force import is_under_environment
from busbw.env.reading.spelled import FILLED, Field, Spelled, joined
from busbw.env.reading.yaml_trees import Mapping, Node, Scalar, Sequence, mappings, yaml_documents
from busbw.model.settings import LaunchCommand

# Manifests of Kubernetes, and others that are written alike: compose files, task files, playbooks.

# Plain scalars that YAML 1.1, which Kubernetes reads, does not take for text. The empty one is null: no value.
_NO_TEXT = re.compile(
    r"(?i:true|false|yes|no|on|off|y|n)|[-+]?(?:0[xob])?[\d_]+|[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
# A variable of the manifest in a value: $(NAME), and $$(NAME) for the text itself.
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_]\w*)\)")
# Keys of task files, workflows and playbooks under which scripts stand.
_SCRIPT_KEYS = {"run", "setup", "script", "shell", "ansible.builtin.shell", "cmd"}
# Keys whose commands and settings are read with the container, the service or the job that they belong to.
_READ_ELSEWHERE = {
    "command",
    "args",
    "entrypoint",
    "env",
    "environment",
    *_SCRIPT_KEYS,
    "before_script",
    "after_script",
}
# A list of Packer's, each of whose texts is a line of one script.
_OF_PACKER = "inline"
_SCRIPT = re.compile(r"\s*#!.*\b(?:ba|z|k|da)?sh\b")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_SETTING = re.compile(rf"({commands.FAMILY_NAME.pattern})=(?=\S)")


def read_kubernetes(piece: Spelled, context: Context) -> None:
    """Take down what the containers of every document are given, and what their commands set."""
    roots = [root for root in yaml_documents(piece, context.ledger) if not read_workflow(root, context)]
    above = _above(roots)
    for node, _ in mappings(roots):
        if _is_container(node):
            _container(node, context)
        elif _text(node, "kind") in {"ConfigMap", "Secret"}:
            _config_map(node, context)
        if isinstance(node.get("environment"), Sequence | Mapping):
            _compose(node, context)
        for variables in (node.get("envs"), _set_by_spack(node)):
            if isinstance(variables, Mapping):
                _plain(variables, context)
        _scripts(node, context)
        _by_name(node, context, is_in_force=_is_environment(node, above))
        _text_for_mapping(node, context)
        _keyed(node, context)
        _file(node, context)


def _keyed(node: Mapping, context: Context) -> None:
    """Read `{"key": "NCCL_DEBUG", "value": "INFO"}`, as lists of variables of some deployments have them."""
    name, value = node.scalar("key"), node.get("value")
    if name is not None and isinstance(value, Scalar) and commands.FAMILY_NAME.fullmatch(name.spelled.text):
        written = value.written
        context.put(name.spelled.text, value.spelled, "manifest", at=name.spelled.origin(0), written=written)


def _set_by_spack(node: Mapping) -> Node | None:
    """Return what Spack sets for a compiler or a package: `environment: {set: {NAME: value}}`."""
    changes = node.get("environment")
    return changes.get("set") if isinstance(changes, Mapping) else None


_FURTHEST = 4


def _above(roots: list[Node]) -> dict[int, tuple[str, ...]]:
    """Return the keys that each mapping stands under, the nearest first."""
    above: dict[int, tuple[str, ...]] = {}
    waiting: list[tuple[Node, tuple[str, ...]]] = [(root, ()) for root in roots]
    while waiting:
        node, keys = waiting.pop()
        if isinstance(node, Scalar) or id(node) in above:
            continue
        above[id(node)] = keys
        if isinstance(node, Mapping):
            waiting += [(value, (key.spelled.text, *keys)[:_FURTHEST]) for key, value in node.pairs]
        else:
            waiting += [(item, keys) for item in node.items]
    return above


def _is_environment(node: Mapping, above: dict[int, tuple[str, ...]]) -> bool:
    """Whether what a mapping has is set for something: by a key above it, or as a file of nothing else."""
    if keys := above.get(id(node), ()):
        return is_under_environment(keys)
    return all(_VARIABLE.fullmatch(key.spelled.text) for key, _value in node.pairs)


def _text_for_mapping(node: Mapping, context: Context) -> None:
    """Take down a text NAME=VALUE as the whole of an `env`, which is a mapping or a list."""
    for found in (node.scalar("env"), node.scalar("environment")):
        if found is not None and found.is_plain and (name := _SETTING.match(text := found.spelled.text)):
            context.ledger.slip("text_for_mapping", found.start, text, name=name[1], meant=text[name.end() :])


# Texts of JSON, within which nothing is a remark, and what editors allow around them.
_JSON_PART = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])|\t", re.DOTALL)


def read_json(piece: Spelled, context: Context) -> None:
    """Take down what JSON sets and starts, as in YAML, whose part it is but for tabs, remarks and last commas."""
    blanked = _JSON_PART.sub(
        lambda found: found[0] if found[0][0] == '"' else re.sub(r"\S|\t", " ", found[0]), piece.text
    )
    read_kubernetes(Spelled(blanked, piece.runs), context)


def _is_container(node: Mapping) -> bool:
    variables = node.get("env")
    if isinstance(variables, Sequence) and any(_names(item) for item in variables.items):
        return True
    has_work = any(isinstance(node.get(key), Sequence) for key in ("command", "args", "envFrom"))
    return has_work and (node.scalar("image") is not None or node.scalar("name") is not None)


def _names(item: Node) -> bool:
    return isinstance(item, Mapping) and item.scalar("name") is not None


def _text(node: Mapping, key: str) -> str:
    found = node.scalar(key)
    return "" if found is None else found.spelled.text


def _container(node: Mapping, context: Context) -> None:
    fields = [*_fields(node.get("command")), *_fields(node.get("args"))]
    line, column = context.ledger.place(node.start)
    number = context.start(
        LaunchCommand(
            kind="container",
            family="Kubernetes",
            argv=context.argv(fields),
            file=context.ledger.file,
            line=line,
            column=column,
        )
    )
    inner = context.inner(launch=number)
    inner.scope = Scope()
    variables = node.get("env")
    for item in variables.items if isinstance(variables, Sequence) else []:
        if isinstance(item, Mapping):
            _variable(item, inner)
    if isinstance(others := node.get("envFrom"), Sequence):
        context.ledger.unread(others.start, "the variables that envFrom takes from elsewhere are not read")
    if fields:
        if commands.is_launcher(fields[0].text):
            commands.check_divided(fields[1:], "", context)
        commands.run(fields, inner)


def _variable(item: Mapping, context: Context) -> None:
    name, value = item.scalar("name"), item.get("value")
    if name is None or not name.spelled.text:
        return
    if isinstance(value, Scalar):
        _put(name, value, context)
        return
    # valueFrom: the value stands elsewhere; neither of them: it is empty.
    source = item.get("valueFrom")
    spelled = Spelled("" if source is None else FILLED, ((0, name.end),))
    context.put(name.spelled.text, spelled, "manifest", at=name.spelled.origin(0))


def _put(name: Scalar, value: Scalar, context: Context) -> None:
    text = value.spelled.text
    if value.is_plain and _NO_TEXT.fullmatch(text):
        context.ledger.slip("not_a_string", value.start, text, name=name.spelled.text, meant=f'"{text}"')
    spelled = _resolved(value.spelled, context)
    written = value.written
    context.put(name.spelled.text, spelled, "manifest", at=name.spelled.origin(0), written=written)
    context.scope.set(name.spelled.text, (Known((spelled,)),))


def _resolved(value: Spelled, context: Context) -> Spelled:
    """Return a value with $(NAME) replaced by what the manifest has for it before."""
    parts: list[Spelled] = []
    done = 0
    for found in _REFERENCE.finditer(value.text):
        parts.append(value.part(done, found.start()))
        done = found.end()
        known = context.scope.get(found[1])[0] if found[1] else None
        if not found[1]:
            parts.append(value.part(found.start(), found.start() + 1))
        elif known is None or not context.ledger.may_resolve(len(known.fields[0].text)):
            parts.append(Spelled(FILLED, ((0, value.origin(found.start())),)))
        else:
            parts.append(known.fields[0])
    parts.append(value.part(done))
    return joined(parts, at=value.origin(0))


def _fields(node: Node | None) -> list[Field]:
    items: list[Node] = node.items if isinstance(node, Sequence) else []
    return [Field(item.spelled, item.start, item.end, is_quoted=True) for item in items if isinstance(item, Scalar)]


def _config_map(node: Mapping, context: Context) -> None:
    """Read the files and the variables that a ConfigMap holds."""
    data = node.get("data")
    for key, value in data.pairs if isinstance(data, Mapping) else []:
        if not isinstance(value, Scalar):
            continue
        name = key.spelled.text
        language = shell_commands.language_of(name, value.spelled.text)
        if language is not None:
            context.read(language, value.spelled, context.inner(target=name, is_new=True))
        elif _VARIABLE.fullmatch(name):
            _put(key, value, context)


def _compose(node: Mapping, context: Context) -> None:
    """Read a service of a compose file: `environment`, as a mapping or a list of NAME=VALUE."""
    variables = node.get("environment")
    line, column = context.ledger.place(node.start)
    launch = LaunchCommand(
        kind="container", family="compose", argv=(), file=context.ledger.file, line=line, column=column
    )
    inner = context.inner(launch=context.start(launch))
    if isinstance(variables, Mapping):
        _plain(variables, inner)
    elif isinstance(variables, Sequence):
        for field in _fields(variables):
            inner.assign(field, "manifest")
        for item in variables.items:
            if isinstance(item, Mapping):
                _variable(item, inner)
    command = node.get("command")
    if isinstance(command, Scalar):
        context.read("shell", command.spelled, inner)
    elif fields := _fields(command):
        commands.run(fields, inner)


def _plain(variables: Mapping, context: Context) -> None:
    for key, value in variables.pairs:
        if isinstance(value, Scalar) and NAME.fullmatch(key.spelled.text):
            written = value.written
            context.put(key.spelled.text, value.spelled, "manifest", at=key.spelled.origin(0), written=written)


def _scripts(node: Mapping, context: Context) -> None:
    """Read what stands under a key for scripts, or begins as one, wherever in a document."""
    for key, value in node.pairs:
        if isinstance(value, Scalar) and (key.spelled.text in _SCRIPT_KEYS or _SCRIPT.match(value.spelled.text)):
            context.read("shell", value.spelled, context.inner(is_new=True))
        elif key.spelled.text == _OF_PACKER and (lines := _lined(value)) is not None:
            context.read("shell", lines, context.inner(is_new=True))
        elif (
            key.spelled.text.lower() not in _READ_ELSEWHERE and shell_commands.language_of(key.spelled.text, "") is None
        ):
            text = _as_text(value)
            script = commands.as_script(text) if text is not None else None
            if script is not None:
                context.read("shell", script, context.inner(is_new=True))


def _as_text(value: Node) -> Spelled | None:
    """Return a text, or the texts of a list as one: lines or words; None for a mapping, and a list of others."""
    if isinstance(value, Scalar):
        return value.spelled
    if not isinstance(value, Sequence) or not value.items:
        return None
    items = [item for item in value.items if isinstance(item, Scalar)]
    texts = [item.spelled.text for item in items]
    # A text of several words is a line by itself, unless options that stand by themselves belong to it.
    is_lines = any(" " in text for text in texts) and not any(text.startswith("-") for text in texts)
    between = "\n" if is_lines else " "
    parts = [part for item in items for part in (item.spelled, Spelled(between, ((0, item.end),)))]
    return joined(parts[:-1]) if len(items) == len(value.items) else None


def _by_name(node: Mapping, context: Context, *, is_in_force: bool) -> None:
    """Read settings by their names, wherever they stand: under an `env` within others, in a list, as name and value."""
    named = [(key, value) for key, value in node.pairs if commands.FAMILY_NAME.fullmatch(key.spelled.text)]
    new = [
        (key, value) for key, value in named if not context.ledger.is_set_at(key.spelled.text, key.spelled.origin(0))
    ]
    name, own = node.scalar("name"), node.scalar("value")
    if name is not None and own is not None and commands.FAMILY_NAME.fullmatch(name.spelled.text):
        new += [(name, own)] * (not context.ledger.is_set_at(name.spelled.text, name.spelled.origin(0)))
    if not new:
        return
    line, column = context.ledger.place(node.start)
    launch = LaunchCommand(kind="other", family="mapping", argv=(), file=context.ledger.file, line=line, column=column)
    inner = context.inner(launch=context.start(launch))
    for key, value in new:
        if not is_in_force:
            context.ledger.spoken(key.start, value.end if isinstance(value, Scalar) else key.end)
        for each in value.items if isinstance(value, Sequence) else [value]:
            if isinstance(each, Scalar) and not (each.is_plain and each.spelled.text in {"", "~", "null"}):
                written = each.written
                inner.put(key.spelled.text, each.spelled, "manifest", at=key.spelled.origin(0), written=written)


def _file(node: Mapping, context: Context) -> None:
    """Read a file that a playbook or cloud-init writes: `path` and `content`."""
    target = node.scalar("path") or node.scalar("dest")
    content = node.scalar("content") or node.scalar("block") or node.scalar("line")
    if target is not None and content is not None:
        shell_commands.read_written(target.spelled.text, content.spelled, context)


# Workflows of GitHub and pipelines of GitLab: variables of the whole, of a job and of a step, and its script.
_SCRIPTS = ("before_script", "script", "after_script")


def read_workflow(root: Node, context: Context) -> bool:
    """Take a document down where it is a workflow or a pipeline; False where it is neither."""
    if not isinstance(root, Mapping):
        return False
    jobs = root.get("jobs")
    if isinstance(jobs, Mapping) and any(_steps(job) for _, job in jobs.pairs):
        outer = _level(root, "env", context)
        for _, job in jobs.pairs:
            if isinstance(job, Mapping):
                _github_job(job, outer)
        return True
    if any(_is_gitlab_job(job) for _, job in root.pairs):
        outer = _level(root, "variables", context)
        for _, job in root.pairs:
            if isinstance(job, Mapping) and _is_gitlab_job(job):
                _script(_lines(job), _level(job, "variables", outer))
        return True
    return False


def _steps(job: Node) -> list[Mapping]:
    steps = job.get("steps") if isinstance(job, Mapping) else None
    return [step for step in steps.items if isinstance(step, Mapping)] if isinstance(steps, Sequence) else []


def _is_gitlab_job(job: Node) -> bool:
    return isinstance(job, Mapping) and any(isinstance(job.get(key), Sequence) for key in _SCRIPTS)


def _github_job(job: Mapping, outer: Context) -> None:
    context = _level(job, "env", outer)
    for step in _steps(job):
        script = step.scalar("run")
        _script(script.spelled if script is not None else None, _level(step, "env", context))


def _level(node: Mapping, key: str, outer: Context) -> Context:
    """Return what is read within one part, which sees the variables of those that it is in."""
    line, column = outer.ledger.place(node.start)
    launch = LaunchCommand(kind="other", family="workflow", argv=(), file=outer.ledger.file, line=line, column=column)
    context = outer.inner(launch=outer.start(launch))
    variables = node.get(key)
    for name, value in variables.pairs if isinstance(variables, Mapping) else []:
        # GitLab also takes a mapping with a description.
        scalar = value.scalar("value") if isinstance(value, Mapping) else value
        if isinstance(scalar, Scalar) and NAME.fullmatch(name.spelled.text):
            written = scalar.written
            spelled = _known(scalar.spelled)
            context.put(name.spelled.text, spelled, "manifest", at=name.spelled.origin(0), written=written)
    return context


def _known(value: Spelled) -> Spelled:
    """Return a value as the runner passes it on; what refers to another variable is not known here."""
    return Spelled(FILLED, ((0, value.origin(0)),)) if "$" in value.text else value


def _lines(job: Mapping) -> Spelled | None:
    """Return the lines of a job's script as one, None where it has none."""
    parts = [lines for key in _SCRIPTS[:2] if (lines := _lined(job.get(key))) is not None]
    return joined(parts) if parts else None


def _lined(node: Node | None) -> Spelled | None:
    """Return the texts of a list as lines, None where it is none or holds none."""
    parts: list[Spelled] = []
    for line in node.items if isinstance(node, Sequence) else []:
        if isinstance(line, Scalar):
            parts += (line.spelled, Spelled("\n", ((0, line.end),)))
    return joined(parts) if parts else None


def _script(script: Spelled | None, context: Context) -> None:
    if script is not None:
        context.read("shell", script, context.inner())
