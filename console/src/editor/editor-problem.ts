/** Something wrong at a place of the text, as the API says it. Lines and columns count from 1. */
export type EditorProblem = {
  readonly line: number
  readonly column: number
  readonly message: string
  readonly severity: 'error' | 'warning'
}

type Place = Pick<EditorProblem, 'line' | 'column'>

/** Returns where the caret of an excerpt points at in the text; the place of the whole value if that is written in another way, with escapes. */
export function pointedAt(text: string, place: Place, excerpt: string | undefined): Place {
  const [shown = '', caret] = excerpt?.split('\n') ?? []
  if (caret === undefined) return place
  const { from, end } = indexOf(text, place)
  const isBlock = /[|>]/.test(text[from] ?? '')
  const at = text.indexOf(shown.replace(/^…|…$/g, ''), from)
  const isThere = at !== -1 && (at <= from + 1 || (shown.startsWith('…') && at < end) || isBlock)
  if (!isThere) return place
  const before = text.slice(0, at + caret.length - 1 - (shown.startsWith('…') ? 1 : 0))
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

function indexOf(text: string, { line, column }: Place): { readonly from: number; readonly end: number } {
  let start = 0
  for (let passed = 1; passed < line; passed += 1) {
    const end = text.indexOf('\n', start)
    if (end === -1) break
    start = end + 1
  }
  const lineEnd = text.indexOf('\n', start)
  const end = lineEnd === -1 ? text.length : lineEnd
  return { from: Math.min(start + column - 1, end), end }
}

/** Returns the part of the text to underline: from the place to the end of the word, or one character. */
export function rangeOf(text: string, { line, column }: EditorProblem): { readonly from: number; readonly to: number } {
  const { from, end } = indexOf(text, { line, column })
  const word = /^(?:"[^"]*"|'[^']*'|[^\s,{}()]+)/.exec(text.slice(from, end))?.[0].length ?? 0
  return { from, to: Math.min(from + Math.max(word, 1), text.length) }
}
