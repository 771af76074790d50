"""How people say in a title that a call refuses an argument, that a package lacks a name, or that a module is not there.

English has most of the forms (:mod:`compat.reports.log.paraphrases`); here are short ones of it, and those of other languages
in which issues are written. Each is a pair: words of which one is in every sentence of the form, and the pattern.
"""

from __future__ import annotations

Q = r"[`'\"]{0,2}"
NAME = rf"{Q}(?P<name>[A-Za-z_]\w{{2,80}})(?:\(\))?{Q}"
OWNER = rf"{Q}(?P<owner>[A-Za-z_]\w{{1,60}}(?:\.\w{{1,60}}){{0,8}})(?:\(\))?{Q}"
MODULE = rf"{Q}(?P<owner>[a-z_][a-z0-9_]{{1,40}}(?:\.\w{{1,60}}){{1,8}}){Q}"
VERSION = r"(?:[ =-]{1,3}(?:v|version )?\d[\w.]{0,20})?"
CANNOT = r"(?:[Cc]an(?:no|')t|[Cc]an not|[Cc]ould not|[Uu]nable to|[Ff]ail(?:s|ed)? to)"

_LET = (
    r"(?:(?:le |el |o |das |den |die |the |l['’])?"
    r"(?:keyword|[Aa]rgumento?|[Pp]aram[eèé]?t(?:er|re)|par[aá]metro|par[aâ]metro|[Oo]ption|opción|opção) )?"
)
"""A word for an argument before its name."""

REFUSING = (
    ((" nicht",), rf"\b(?:nimmt|akzeptiert|kennt|unterstützt|erlaubt) (?:\w{{2,6}} )?{_LET}{NAME} nicht\b"),
    (
        ("accepte", "connaît", "prend", "supporte"),
        rf"\bn(?:e |['’])(?:accepte|connaît|prend|supporte|reconnaît) (?:pas|plus) {_LET}{NAME}",
    ),
    (("acepta", "reconoce", "soporta"), rf"\bno (?:acepta|reconoce|soporta|admite)(?: más)? {_LET}{NAME}"),
    (("aceita", "reconhece", "suporta"), rf"\bnão (?:aceita|reconhece|suporta)(?: mais)? {_LET}{NAME}"),
    (
        ("принимает", "знает", "поддерживает"),
        rf"\bне (?:принимает|знает|поддерживает) (?:аргумент |параметр |опцию )?{NAME}",
    ),
    (("不",), rf"不(?:再)?(?:支持|接受|认识|识别|認識) ?(?:参数|參數|关键字)? ?{NAME}"),
    (("参数", "參數"), rf"(?:没有|沒有|无) ?{NAME} ?(?:这个|這個)? ?(?:参数|參數)"),
    (
        ("受け", "サポート", "認識"),
        rf"{NAME} ?(?:という|の)? ?(?:引数|パラメータ|キーワード)? ?[をはが] ?(?:受け取|受け付け|サポート|認識)",
    ),
    (
        ("인자", "인수", "파라미터", "매개변수"),
        rf"{NAME} ?(?:이라는|라는)? ?(?:키워드 )?(?:인자|인수|파라미터|매개변수)",
    ),
)
"""A call does not take an argument."""

_IS_NOT = (
    r"(?:is ?n['’]?o?t|does ?n['’]?o?t exist|(?:was |is )?not found|not available|fehlt|gibt es nicht(?: mehr)?"
    r"|n['’]existe (?:pas|plus)|(?:ya )?no existe|não existe(?: mais)?)"
)
LACKING = (
    (
        (" in ", " en ", " em ", " no ", " na ", " dans "),
        rf"{NAME} {_IS_NOT} (?:in|dans|en|em|no|na) (?:my |the |meinem |dem )?{OWNER}",
    ),
    (("find ", "no "), rf"(?:(?:{CANNOT}|does ?n['’]?o?t) find|\b[Nn]o) (?:the )?{NAME} in (?:my |the )?{OWNER}"),
    (
        (" have ", "lacks ", "missing ", "lost "),
        rf"(?<![\w.]){OWNER}{VERSION} (?:does ?n['’]?o?t have|lacks|is missing|lost) (?:the |a )?{NAME}",
    ),
    (
        (" hat kein",),
        rf"(?<![\w.]){OWNER}{VERSION} hat keine?n? (?:Attribut |Methode |Funktion |Klasse )?{NAME}",
    ),
    (
        (" n'a ", " n’a "),
        rf"(?<![\w.]){OWNER}{VERSION} n['’]a (?:pas|plus|aucun) (?:d['’]attribut |de méthode |de )?{NAME}",
    ),
    (
        (" tiene ", " tem "),
        rf"(?<![\w.]){OWNER}{VERSION} (?:ya )?n(?:o tiene|ão tem)(?: más| mais)? (?:el atributo |o atributo )?{NAME}",
    ),
    ((" нет ",), rf"{OWNER} (?:больше )?нет (?:атрибута |метода |класса )?{NAME}"),
    (("导入", "導入", "匯入"), rf"从 ?{OWNER} ?(?:导入|導入|匯入) ?{NAME}"),
    (("没有", "沒有", "找不到"), rf"{OWNER} ?(?:里面?|中|裡面?)? ?(?:没有|沒有|找不到) ?{NAME}"),
    (
        ("ない", "無い", "見つから", "インポート"),
        rf"{OWNER} ?(?:に|には|から) ?{NAME} ?[がを] ?(?:ない|無い|見つから|インポート)",
    ),
    (("에서", "에 "), rf"{OWNER} ?(?:에서|에) ?{NAME}"),
)
"""A package or a class has no such name."""

_DOTTED = rf"{Q}(?P<name>[a-z_][a-z0-9_]{{1,40}}(?:\.[a-z_][a-z0-9_]{{1,40}}){{1,6}}){Q}"
NOT_FOUND = (
    (("find ", "import "), rf"(?:{CANNOT}|does ?n['’]?o?t) (?:find|import) (?:the )?(?:module )?{_DOTTED}(?![\w/])"),
    (("没有", "沒有", "缺少", "找不到"), rf"(?:找不到|没有|沒有|缺少) ?{_DOTTED}"),
    (
        ("odul", "ódul"),
        rf"(?:[Kk]ein Modul(?: namens)?|[Aa]ucun module(?: nommé)?|el módulo|[Nn]enhum módulo(?: chamado)?) {_DOTTED}",
    ),
    (("модуля",), rf"нет модуля {_DOTTED}"),
)
"""A module is not there; only dotted names, since a word alone is rarely one."""
