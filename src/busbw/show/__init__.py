"""Results for people and for other tools: values in, text or bytes out.

`text` is for terminals, `page` is the HTML report, `figures` draws, `exports` writes other tools' formats. What these
share lies here: begin with `words`.
"""
