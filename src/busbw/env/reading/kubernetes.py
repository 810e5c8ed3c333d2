"""Reads manifests of Kubernetes, and of others that are written alike: containers, their environments and commands."""

import re

from busbw.env.reading import commands, documents
from busbw.env.reading.context import NAME, Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.scope import Known, Scope
from busbw.env.reading.spelled import FILLED, Spelled, joined
from busbw.env.reading.workflows import read_workflow
from busbw.env.reading.yaml_tree import Mapping, Node, Scalar, Sequence, mappings
from busbw.env.reading.yaml_tree import documents as yaml_documents
from busbw.model.settings import LaunchCommand

# Plain scalars that YAML 1.1, which Kubernetes reads, takes for no text. The empty one is null, and null is no value.
_NO_TEXT = re.compile(
    r"(?i:true|false|yes|no|on|off|y|n)|[-+]?(?:0[xob])?[\d_]+|[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
# A variable of the manifest in a value: $(NAME), and $$(NAME) for the text itself.
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_]\w*)\)")
# Keys of task files, workflows and playbooks under which scripts stand.
_SCRIPT_KEYS = {"run", "setup", "script", "shell", "ansible.builtin.shell", "cmd"}
_SCRIPT = re.compile(r"\s*#!.*\b(?:ba|z|k|da)?sh\b")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")


def read_kubernetes(piece: Spelled, context: Context) -> None:
    """Take down what the containers of every document are given, and what their commands set."""
    roots = [root for root in yaml_documents(piece, context.ledger) if not read_workflow(root, context)]
    for node, _ in mappings(roots):
        if _is_container(node):
            _container(node, context)
        elif _text(node, "kind") in {"ConfigMap", "Secret"}:
            _config_map(node, context)
        if isinstance(node.get("environment"), Sequence | Mapping):
            _compose(node, context)
        if isinstance(variables := node.get("envs"), Mapping):
            _plain(variables, context)
        _scripts(node, context)
        _file(node, context)


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
    written = (value.start, value.end)
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
        language = documents.language_of(name, value.spelled.text)
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
            written = (value.start, value.end)
            context.put(key.spelled.text, value.spelled, "manifest", at=key.spelled.origin(0), written=written)


def _scripts(node: Mapping, context: Context) -> None:
    """Read what stands under a key for scripts, or begins as one, wherever in a document."""
    for key, value in node.pairs:
        if isinstance(value, Scalar) and (key.spelled.text in _SCRIPT_KEYS or _SCRIPT.match(value.spelled.text)):
            context.read("shell", value.spelled, context.inner(is_new=True))


def _file(node: Mapping, context: Context) -> None:
    """Read a file that a playbook or cloud-init writes: `path` and `content`."""
    target = node.scalar("path") or node.scalar("dest")
    content = node.scalar("content") or node.scalar("block") or node.scalar("line")
    if target is not None and content is not None:
        documents.read_written(target.spelled.text, content.spelled, context)
