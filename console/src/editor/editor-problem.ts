/** Something wrong at a place of the text, as the API says it. Lines and columns count from 1. */
export type EditorProblem = {
  readonly line: number
  readonly column: number
  readonly message: string
  readonly severity: 'error' | 'warning'
}

/** Returns the part of the text to underline: from the place to the end of the word, or one character. */
export function rangeOf(text: string, { line, column }: EditorProblem): { readonly from: number; readonly to: number } {
  let start = 0
  for (let passed = 1; passed < line; passed += 1) {
    const end = text.indexOf('\n', start)
    if (end === -1) break
    start = end + 1
  }
  const lineEnd = text.indexOf('\n', start)
  const end = lineEnd === -1 ? text.length : lineEnd
  const from = Math.min(start + column - 1, end)
  const word = /^(?:"[^"]*"|'[^']*'|[^\s,{}]+)/.exec(text.slice(from, end))?.[0].length ?? 0
  return { from, to: Math.min(from + Math.max(word, 1), text.length) }
}
