"""What bash takes for a script is read to its end, and what follows it is seen."""

import subprocess

import pytest

from busbw.env.reading import read
from busbw.model.settings import SettingsReading

from .wording import told

# Each is a whole command or several; behind it stands an export.
SCRIPTS = [
    # Here-documents.
    "x=$(cat <<'E'\n) it's \" `\nE\n)",
    'x="$(cat <<E\n) it\'s (\nE\n)"',
    'x="a $(echo "$(cat <<\'E\'\n) " \'\nE\n)") b"',
    "x=`cat <<E\nit's (\nE\n`",
    "x=$(cat <<-E\n\t) '\n\tE\n)",
    "x=$(cat <<E; cat <<'F'\n)\nE\n'\nF\n)",
    "x=$(cat <<\\E | tr a b\n)\nE\n)",
    'x=$(cat <<"E F" && echo $((1<<2))\n)\nE F\n)',
    "cat <<E | tr a b\n) it's $(echo ')') ${x:-y}\nE",
    "cat <<E\n$(cat <<F\n'\nF\n)\nE",
    "cat <<A <<-'B'\n1\nA\n\t2\n\tB",
    "cat <<''\nit's\n",
    "cat <<E`a b`F\n'\nE`a b`F",
    "diff <(cat <<E\n)\nE\n) <(cat <<F\n'\nF\n)",
    "f() {\n  cat <<E\n}\nE\n}",
    "while read l; do :; done <<E\ndone '\nE",
    "if cat <<E; then\nfi '\nE\n  :\nfi",
    'cat <<< "$x"',
    "cat <<<$(echo a)",
    "cat <<< a > b",
    "x=$(tr a b <<< ')')",
    'x=$(tr a b <<<"it\'s")',
    # case
    "case $x in a) : ;& b|c) : ;;& (d) : ;; *) : ; esac",
    "case $x in\n  # it's a remark\n  a) ;;\n  esac",
    "case $x in esac",
    'case "$x" in "a b") :;; [a-z]*) :;; ?(x|y)) :;; \'(\') :;; \\)) :;; esac',
    "case $x in if) : ;; done) : ;; esac",
    "case $x in (esac) : ;; esac",
    "case in in in) : ;; esac",
    "case $x\nin\na) :\nesac",
    "case $(echo a) in a) case b in b) :;; esac;; esac",
    "x=$(case $y in a) echo 1;; (b) echo 2 ;; esac)",
    "x=$(case $y in a) case z in z) echo ')' ;; esac ;; esac; echo case esac)",
    "case $x in a) cat <<E ;;\nesac\nE\nesac",
    "case $x in a) { :; } ;; b) ( : ) ;; c) if :; then :; fi ;; esac",
    "x=$( (ls)# it's\n) y=$(case x in a)# it's\n;; esac) z=$(echo $(ls)#')')",
    "x=$(case x in x) ;; y) echo esac ;; z) echo case in esac; esac)",
    "x=$(case x in x) if :; then :; fi esac) y=$(case x in x) { :; } esac; case x in esac)",
    # Loops, conditions
    "if ((x)) then ((x)) fi; if [[ x ]] then [[ x ]] fi; while ((x)) do ((x)) done",
    "for ((i=0; i<3; i++)); do :; done",
    "for ((;;)) do break; done",
    "for ((i=0; i<3; i++)) { :; }",
    "for i in a b; { echo $i; }",
    "for i do echo $i; done",
    "for i\ndo :; done",
    "for i; do :; done",
    "for i\nin a b\ndo :\ndone",
    "for i in do done; do echo $i; done",
    "for i in; do :; done",
    "for i in a \\\n  b; do :; done",
    "for i in $(seq 3) `seq 3` {1..3}; do :; done &",
    "select i in a b; do break; done",
    "while :; do break; done < <(ls) > out",
    "until [ -f a ]; do sleep 1; done",
    "while read -r a b; do echo $a; done <<< 'x y'",
    "while ! test -f a; do :; done",
    "if ! grep -q a b; then :; elif (( x > 1 )); then :; else :; fi > log 2>&1",
    "if [ a ]; then :; fi; if true; then { :; } fi",
    "if (true) then :; fi",
    "if [[ $a =~ ^(a|b)+$ ]]; then :; fi",
    "[[ $a =~ ^[[:space:]]*\\( ]]",
    "[[ $a =~ (x) && ! ( $b == *.[ch] ) ]]",
    '[[ $x == "]]" ]]',
    "[[ $a &&\n  $b ]]",
    "[[ a < b || ! -f c ]] && :",
    "[[ -n ${a[0]} && ${b[@]} =~ x ]] || { :; }",
    "[[ $a == @(b|c) ]]",
    "! true",
    "time ls; time; time -p ls",
    "coproc NAME while :; do :; done",
    "for time in a; do time for i in b; do :; done; done",
    "time -p { ls; }",
    "time if true; then :; fi",
    "! { true; }",
    "! if true; then :; fi",
    "true && { :; } || ( : )",
    "true &&\n\n  # a remark with (\n  true ||\n  false",
    "true |\n  cat |&\n  cat",
    "coproc cat",
    "coproc NAME { cat; }",
    "coproc { cat; }",
    "coproc while read l; do :; done",
    # Functions
    "function f { :; }",
    "function f() { :; }",
    "function f ( ) ( : )",
    "f() ( : )",
    "f()\n{\n  :\n}",
    "f() { :; } > log",
    "f() if true; then :; fi",
    "f() for i in a; do :; done",
    "f() { g() { :; }; }",
    "f-g.h() { :; }",
    "function f-g:h { :; }",
    "f () { { :; }; }",
    "f() { return 0; }; f() { echo '}'; }",
    "f() [[ a == b ]]",
    "f() case $x in a) :;; esac",
    "f() ((x++))",
    # Words
    "a=(1 2 3); a+=(4); a[5]=6; echo ${a[@]:1:2} ${#a[@]} ${!a[@]}",
    "a=(\n  # it's a remark\n  1 # (\n  2\n)",
    "a=([0]=x [1]='y z')",
    "declare -A a=([x]=1 [y]=$(echo ')'))",
    "declare -a a=(1 2) b=(3)",
    "a=()",
    "declare -A a=([x]='(y)') \"b=c\"",
    'local_a=( $(echo a) `echo b` "${b[@]}" )',
    "echo a{b,c}d {1..3} {a,{b,c}} { }",
    "echo }",
    "echo $'it\\'s' $'\\t' $\"x\"",
    "echo $(echo $'it\\'s')",
    'echo "$(echo "it\'s")" \'`\' "\\`"',
    "echo \"${x:-it's}\" \"${x:=a'b}\" \"${x#'}'}\" ${x:-'}'}",
    'echo ${x/(/y} ${x//)/} ${x%%(*} ${x##*)} "${x/(/}"',
    "echo ${x:-$(echo ')')} ${x:+\"}\"} ${x^^} ${x,,} ${x@Q} ${!x} ${!x*}",
    "echo ${x:1:${#x}-1} ${x: -1} ${#} $# $? $! $$ $- $@ $*",
    "echo ${x/\\//y} ${x/\\}/y} ${x//\\'/y}",
    'echo "${x//\\"/}" "${x//\\\'/}"',
    "echo $((1 + (2 * 3))) $(( x << 2 )) $((16#ff)) $(( (1) )) $[1 + 2]",
    "echo $(( $(echo 1) + ${x:-2} )) $((x > 1 ? 2 : 3))",
    "echo $(( a[1] << b ))",
    "(( x = 1 << 2 )); (( x && y )); ((x++)); let 'x<<=1'",
    "((x > 1)) && echo ')'",
    "((true); (true))",
    "( (true); true )",
    "echo $( (echo a); echo b )",
    "echo $((echo a); (echo b))",
    "echo $(# a remark with )\n  echo a)",
    "echo $(echo a # it's )\n)",
    "echo $(echo a#b')')",
    "echo `# a remark` a \\\n  `# it\\'s` b",
    "echo \\\n  a \\\n  b",
    "ec\\\nho a",
    "echo 'a\nb' \"c\nd\"",
    "echo a#b '#' \\# ${#x} $#",
    "echo !(a) ?(b) *(c|d) +(e) @(f)",
    "ls !(*.a|*.b) @(x|y)z",
    "x=+(a)",
    "cat <(echo a) <(echo ')') > >(cat)",
    "exec 3<> a 4>&1 5<&- {fd}>b",
    "ls 2>&1 >/dev/null | cat &> a; ls &>> b; ls >| c; ls >& d; ls 2>/dev/null&",
    "> a",
    "< a cat > b",
    "2> a ls",
    "A=b > c",
    "ls & ls & wait",
    "ls; # it's a remark",
    "ls;# it's a remark (",
    "ls &# it's",
    "{ ls; } # it's",
    "{ ls;}; (ls)# it's",
    "{\n# it's\nls\n}",
    "x='' y=\"\" z=$'' ls",
    "alias a='b \"c\"'",
    "trap 'rm -f \"$x\"; exit' EXIT",
    'eval "x=(1 2)"',
    'printf \'%s\\n\' "$(printf \'%s\' "$(echo "a")")"',
    "awk '{ print $1 \"(\" }' f | sed -e 's/[\"`]/(/'",
    'x=$(awk \'{ print $1 ")" }\' f | sed -e "s/[\']/)/")',
    'x=$(if true; then echo ")"; fi)',
    "x=$(for i in a b; do case $i in a) echo;; esac; done)",
    "x=$(<f)",
    "x=$(cmd 2>&1 <<< a)",
    "x=$(echo \\))",
    "x=$(echo \\`)",
    "x=`echo \\`echo a\\``",
    'x="`echo "a"`"',
    "x=\"`echo 'a b'` (\"",
    "x=~/a:~b",
    "echo $x$'a'\"b\"'c'\\d",
    "echo '\\' \"\\\\\"",
    "echo $",
    'echo "$" "a$"',
    "echo @ % ^ , . : [ ] = + -- -",
    "[ a = b -o \\( c = d \\) ]",
    "test \\! -f a",
    "set -- a 'b c' \"$@\"",
    ":() { :; }; : ()\n{ :; }",
    "unset 'a[0]' b",
    "read -r a b < <(echo x y)",
    "mapfile -t a < <(ls)",
    "x[1+2]=3; x[$((i<<1))]=4",
    "if true; then\n  :\n# it's a remark\nfi",
    "\n\n  \t\n;".replace(";", ":"),
    "echo a; echo b &&\necho c",
    "then=1; echo if then else fi do done case esac",
    "echo a | while read x; do :; done | { cat; }",
    "echo a |\n# it's a remark\ncat",
]


# What a script may stand in.
AROUND = [
    "x=$(\n{}\n)", 'x="a $(\n{}\n) b"', "(\n{}\n)", "if :; then\n{}\nfi", "case x in a)\n{}\n;; esac", "f() {{\n{}\n}}",
    "A=(a $(\n{}\n))", "cat <(\n{}\n)", "echo ${{x:-$(\n{}\n)}}", "echo $(( $(\n{}\n) + 1 ))",
    "x=$(case y in (a)\n{}\n;; esac)", "cat <<END\n$(\n{}\n)\nEND",
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_valid_script_is_read_to_its_end(script: str) -> None:
    text = f"shopt -s extglob\n{script}\nexport LAST=seen\n"
    assert is_valid(text)

    reading = read(text, "script", "shell")

    assert [each.reason for each in reading.unread] == []
    assert [each.written for each in reading.slips] == []
    assert told(reading)[-1] == "export LAST=seen"
    assert reading.assignments[-1].arms == ()


@pytest.mark.parametrize("around", AROUND)
def test_a_valid_script_within_another_is_read_to_its_end(around: str) -> None:
    texts = [f"shopt -s extglob\n{around.format(script)}\nexport LAST=seen\n" for script in SCRIPTS]
    readings = [read(text, "script", "shell") for text in texts]
    stopped = [text for text, found in zip(texts, readings, strict=True) if found.unread or "LAST" not in names(found)]

    assert [text for text in stopped if is_valid(text)] == []


def names(reading: SettingsReading) -> list[str]:
    return [each.name for each in reading.assignments[-1:] if each.arms == ()]


def is_valid(text: str) -> bool:
    """Whether bash takes a text, without a warning."""
    done = subprocess.run(["bash", "-O", "extglob", "-n"], input=text, text=True, capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr
