"""English phrases that ask, lack, stop, settle or decline: features of the model, not rules."""

from __future__ import annotations

import re


def phrases(sentence: str) -> frozenset[str]:
    """The kinds of phrases in the sentence."""
    if not sentence.isascii() and not _LATIN.search(sentence):
        return frozenset()
    return frozenset(name for name, pattern in _PHRASES.items() if pattern.search(sentence))


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.I)


_ASKED = r"(?:you|we|someone|somebody|anyone|anybody|the \w+|\w+, )"
_TELL = r"(?:provide|share|send|supply|specify|clarify|upload|describe|tell (?:me|us)|give (?:me|us)|point (?:me|us)|advise)"
_CANNOT = r"(?:cannot|can ?not|can't|could not|couldn't|(?:am|are|is|be) (?:unable|not able) to|won't be able to)"
_GO_ON = (
    r"(?:proceed|continue|go on|move (?:on|forward|ahead)|finish|complete|implement|start|begin|build|write|answer|solve|"
    r"determine|calculate|compute|provide|decide|give|make)"
)

_REQUEST = _any_of(
    rf"\b(?:please|kindly)\b[^.?!]{{0,40}}\b{_TELL}\b",
    rf"\b(?:could|can|would|will) {_ASKED}[^.?!]{{0,40}}\b(?:{_TELL}|confirm (?:the|which|what|where|whether)|let (?:me|us) know)\b",
    r"\bplease (?:let (?:me|us) know|confirm) (?:which|what|where|who|how|whether|if you've|the (?:following|correct|exact))",
    r"\bif (?:you|someone|anyone)(?: can| could)? (?:provide|share|send|locate|have) [^.?!]{0,600}\bI (?:can|could|will)\b",
    r"\b(?:I|we)(?:'ll| will)? (?:still |also |first )?need (?:to know|more (?:information|context|detail)|clarification|(?:the|an?|your) "
    r"[^.?!]{0,60}\b(?:to|before|from you))\b",
    r"\bhere's what I need\b",
)
_STUCK = _any_of(
    rf"(?:\b(?:I|we|this|the (?:task|work|story|implementation|problem|solution|answer))\b[^.?!]{{0,30}}|^)\b{_CANNOT} {_GO_ON}\b[^.?!]{{0,600}}"
    r"\b(?:without|until|unless|because|as (?:the|it|there)|since)\b",
    rf"\b(?:without|until|unless) (?!.{{0,600}}\busers?\b)[^.?!]{{0,600}}\b(?:I|we) (?:\w+ )?{_CANNOT}\b",
    r"^blocked\b *(?:[:—–-]|on|by|until|because|waiting|as|since)",
    r"\b(?:I|we)(?:'m| am|'re| are) (?:still |now )?(?:blocked|stuck)\b",
    r"\b(?:I'm|I am|we're|we are) (?:still )?waiting (?:for|on) (?:the|an?|your|you|more|details|clarification|information|some)",
    r"\b(?:spec|specification|story|task|ticket|problem|statement|documentation|brief|requirements?|prompt)\b[^.?!]{0,40}"
    r"\b(?:(?:does|do)(?: not|n't) (?:say|specify|state|mention|define|tell)[^.?!]{0,30}\b(?:which|what|how|where|who|when|whether)|(?:is|are) (?:unclear|ambiguous|silent|incomplete))\b",
    r"^(?:the |some |this )?(?:\w+ ){0,2}(?:information|context|details?|requirements?|specification|schema|contract|criteria) (?:is|are) (?:still )?"
    r"(?:missing|unclear|not (?:provided|given|specified|available|clear))",
    r"^no \w+(?: \w+)? (?:was|were|is|are|has been) (?:provided|given|specified|defined)\b",
    r"\b(?:it is|it's|it remains|remains) (?:still )?(?:unclear|not clear|unspecified) (?:to me |to us )?(?:which|what|where|who|how|whether|if)",
    r"\b(?:I|we)(?: am|'m| are|'re)? (?:still )?(?:missing|lack|lacking|unsure (?:about|which|what|how|whether)|not sure (?:which|what|how|whether|about))\b",
    r"\b(?:I|we) (?:do not|don't) (?:know (?:which|what|where|who|how|whether)|have (?:the|any|enough|access to the) "
    r"[^.?!]{0,40}(?:information|context|details|schema|spec|contract|decision|requirements))",
    r"\b(?:I|we) have no (?:information|context|details|idea|access)\b",
    r"\b(?:I|we) (?:cannot|can't|could not|couldn't) find (?:the|any|an?) (?:\w+ )?(?:spec|specification|schema|contract|documentation|decision|requirements?|information)\b",
    r"\bnobody (?:has )?(?:told|answered)\b",
    r"\b(?:insufficient|not enough) (?:information|context|details|data)\b",
    r"^missing (?:information|context|details)\b",
    r"^need (?:the|an?|your) [^.?!]{0,60}\b(?:to|before|from)\b",
    r"^(?:need|waiting (?:for|on)) the (?:\w+ ){0,2}(?:contract|schema|spec|specification|decision|requirements?|criteria|credentials|design)\W*$",
    r"\b(?:I|we) have no clue\b",
    r"\b(?:cannot|can't|can not) (?:implement|build|write|start|continue|proceed|go on|finish)\b[^.?!]{0,600}: (?:there is|there's|we have) no\b",
    r"\b(?:isn't|is not|wasn't|was not) (?:documented|specified|defined|decided)(?: \w+){0,3}, so (?:I|we) (?:stopped|stop|wait)\b",
    r"\b(?:I|we) (?:do not|don't) have (?:the|any|an?) [^.?!]{0,600}\b(?:cannot|can't)\b",
    r"\b(?:not sure|unsure|unclear) (?:on|about|which|what|how|whether|where|who)\b",
    r"\b(?:I|we|^)\b ?needs? (?:more|further|additional) (?:info|information|context|details?|clarification)\b",
)
_NOT_GIVEN = _any_of(
    r"\b(?:is|are|was|were)(?: not|n't| never) (?:explicitly |specifically |yet )?(?:provided|given|specified|stated|known|mentioned|available)\b",
    r"\b(?:does|do|did)(?: not|n't) (?:explicitly |specifically )?(?:provide|specify|give|mention|state|include|tell)\b",
    r"\b(?:without|lacks?|lacking|missing|no) (?:[\w'-]+ ){0,4}(?:information|data|details|knowledge|value|context)\b",
    r"\b(?:don't|do not) (?:actually |currently )?(?:have|know) (?:the|an?|any|enough|how)\b",
    r"\b(?:unspecified|unknown|insufficient|not enough (?:information|data))\b",
    r"\bwithout (?:knowing|the|this|that|additional|further|more)\b",
)
_STOPS = _any_of(
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to|impossible to|not possible to|not able to) (?:\w+ ){0,3}"
    r"(?:determined?|calculated?|computed?|solved?|found|find|provided?|given?|arrive|concluded?|answer(?:ed)?|proceed|continue|complete)\b",
    r"\b(?:I|we) (?:have |had to )?(?:stopped|stop) (?:here|work)\b",
    r"\b(?:unsolvable|unanswerable|cannot be solved|can't be solved|insufficient (?:information|data|context|details))\b",
)
_SETTLED = _any_of(
    r"\b(?:so|therefore|hence|thus),? (?:I|we) (?:used|chose|assumed|went|took|picked|will use|use)\b",
    r"\bI (?:fixed|added|resolved|filled|found|clarified|provided)\b",
    r"\b(?:returns?|raises?|throws?|when|whenever) [^.?!]{0,600}\b(?:missing|blocked|unclear)\b",
)
_QUESTION = _any_of(
    r"^(?:\W*\w+[,:]? )?(?:so |and |but |also,? |then |given [^,]*, |to \w+, )*"
    r"(?:which|what|where|who|whom|whose|when|how|why|should (?:I|we|it|the)|shall I use|do (?:we|you) (?:have|use|know|keep|store|want the)|"
    r"does (?:anyone|anybody|someone|the|our|this|it)|is (?:there|the|it|this)|are (?:there|we|the)|has (?:anyone|somebody|the)|"
    r"have (?:we|you)|can (?:anyone|someone|we)|could (?:you|anyone|someone)|must (?:we|it|the)|may (?:I|we))\b",
    r", (?:which|what|where|should (?:I|we)|is there|do we) [^?]{0,600}\?$",
    r"^(?:welche[rsmn]?|was|wie|wo|wer|wann|warum|sollen wir|quel(?:le)?s?|comment|combien|qual[ei]?|cu[aá]l(?:es)?|qu[eé]|d[oó]nde|c[oó]mo)\b",
)
_NOT_AN_ASK = _any_of(
    r"\bno (?:missing|further|more|additional|longer|open)\b",
    r"\bnothing (?:is|else|more)\b",
    r"^blocked\W+(?:none|nothing|no\b|n/a|-)",
    r"\b(?:not|no longer|never|isn't|wasn't) (?:blocked|missing|unclear|waiting)\b",
    r"\blet (?:me|us) know if (?:you (?:have|need|want|would|require|run)|there (?:is|are)|anything|this)",
    r"\b(?:any|further|other|more|additional) (?:questions?|tasks?|assistance|requests?)\b",
    r"\banything else\b",
    r"\bfeel free\b",
    r"\b(?:would you like (?:me|to (?:proceed|continue))|do you want me|should I go ahead|shall (?:I|we) (?:proceed|continue|go|start|finali[sz]e))\b",
    r"\bhow (?:can|may) I (?:help|assist)\b",
    r"\b(?:do you|does everyone|do we all|everyone) agrees?\b|\bwhat (?:are your thoughts|do you think)\b|\bany (?:objections|thoughts|feedback)\b",
    r"\b(?:is (?:this|that|it|everything)|does (?:this|that|it)) (?:correct|right|ok|okay|fine|clear|good|make sense|look|sound|work)\b",
    r"\b(?:verify|confirm) (?:and confirm )?(?:the (?:accuracy|completion|correctness)|that|with a)\b",
    r"\b(?:any|new|other|another|alternative|different|further|additional) (?:\w+ ){0,2}(?:concerns?|disagreements?|queries|issues|problems?|approach(?:es)?|insights?|suggestions?|considerations?|focus|aspects?)\b",
    r"\bwhat (?:does|do) (?:the team|everyone|others|you all) think\b|\bhow would you (?:approach|solve|handle)\b|\bwhat(?:'s| is) your (?:solution|answer|opinion|take)\b",
    r"\blet (?:me|us) know (?:when|once|as soon)\b",
    r"\bneed (?:an?|the) (?:\w+ ){0,2}(?:code|result|script|output|revisiting)\b|\bwhere to proceed\b",
    r"\b(?:reconsider|double-check your|try again|rerun|run (?:the|this) (?:\w+ ){0,3}code)\b",
    r"\b(?:result|output)s? (?:of|for|from) (?:this|the|your|that|running)\b|\bcode snippet\b|\busing (?:python )?code\b",
    r"^(?:to|in order to) (?:find|determine|calculate|compute|solve|know|figure|get|answer)\b[^.?!]{0,600}\bwe (?:need|have|must|should)\b",
    r"^if (?:there(?:'s| is| are)|further|anybody|you have a (?:specific|different)|you have documents|the goal)\b",
    r"\b(?:provide|share|send|give (?:me|us)) (?:me |us )?(?:with )?(?:an? |the )?(?:comprehensive|overview|remaining|corresponding|output|execution|correct python|updated?|final|complete[d]?|result|summary|report|implementation|"
    r"script|code|python|patch|snippet|full (?:code|definition)|content of)",
)
_GOES_ON_ASKING = _any_of(
    r"\?$",
    r"^(?:if|once|until|unless|otherwise|please|without|as soon|then|thanks|thank you|I (?:need|can't|cannot|will wait|am|want)|we (?:need|can't|cannot)|"
    r"this (?:is needed|blocks)|that (?:blocks|decides)|or|and)\b",
)
_LATIN = re.compile(r"[a-zA-Z]{3}")
_PHRASES = {
    "Rrequest": _REQUEST,
    "Rstuck": _STUCK,
    "Rnot_given": _NOT_GIVEN,
    "Rstops": _STOPS,
    "Rsettled": _SETTLED,
    "Rquestion": _QUESTION,
    "Rnot_an_ask": _NOT_AN_ASK,
    "Rgoes_on": _GOES_ON_ASKING,
}
