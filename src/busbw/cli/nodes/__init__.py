"""Verbs that ask which of many nodes is bad, a module each; `cli.command` names them."""
