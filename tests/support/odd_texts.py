"""Texts that people do not think of."""

ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "no word": "?! ... --",
    "one word": "good",
    "one letter": "a",
    "repeated": "no no no, NO",
    "emoji": "good 👍🏽 food 🇩🇪 👩‍🍳",
    "emoji alone": "👍👍",
    "html": "<b onclick=\"alert('x')\">good</b> &amp; <script>bad()</script>",
    "attributes": "\"><img src=x onerror=alert(1)> & &amp; '</span></div></style><b>",
    "right to left": "אוכל טוב מאוד \u202eevil\u202c الطعام جيد",
    "control": "good\x00food\x1b[31m red\x07\x08 \x7f\x85 end\r\nnew",
    "nul": "\0",
    "surrogate": "good \ud83d half \udc4d food",
    "combining": "cafe\u0301 café a\u030a\u0323",
    "dotted capital": "İstanbul'da İyi, istanbul",
    "final sigma": "ΟΔΟΣ οδος οδοσ",
    "ligature": "ﬁne ﬀ ½ ﷺ",
    "zero width": "go\u200bod fo\u00adod \ufeff",
    "no blanks": "我喜欢这里的食物",
    "long word": "x" * 10_000,
    "digits": "10 out of 10, ١٠",
}
"""Each by what is odd about it."""

MANY_WORDS = " ".join(f"word{n}" for n in range(5_000))
