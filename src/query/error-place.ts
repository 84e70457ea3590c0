/** Problem with a statement, and its place. Lines and columns count from 1. */
export type StatementProblem = { readonly message: string; readonly line?: number; readonly column?: number }

/** DuckDB shows the place of an error as a line of the statement, cut to the width of a terminal, with a caret below. */
const shownPlace = /^(?<message>.*?)\n\nLINE (?<line>\d+): (?<excerpt>[^\n]*)\n(?<room> *)\^\s*$/s
const kindOfError = /^[A-Z][A-Za-z ]+ Error: /
const cut = '...'

/** Reads the place from an error of DuckDB. */
export function placeError(text: string, sql: string): StatementProblem {
  const { message: said = text, line, excerpt = '', room = '' } = shownPlace.exec(text)?.groups ?? {}
  const message = said
    .replace(kindOfError, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
  const whole = sql.split('\n')[Number(line) - 1]
  if (whole === undefined) return { message }
  const start = excerpt.startsWith(cut) ? cut.length : 0
  const shown = excerpt.slice(start).replace(/\.\.\.$/, '')
  const column = whole.indexOf(shown) + room.length - `LINE ${line}: `.length - start
  return { message, line: Number(line), column: Math.max(0, column) + 1 }
}

/** Turns the offset of a byte into a place. */
export function placeByte(message: string, sql: string, byte: number): StatementProblem {
  const before = Buffer.from(sql).subarray(0, byte).toString().split('\n')
  return { message, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
