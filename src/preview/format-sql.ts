/**
 * Breaks the compiler's SQL into lines: each subquery is indented, each of its columns has a line of its own.
 * Adds and removes nothing but white space between words.
 */
export function formatSql(sql: string): string {
  let out = ''
  let at = 0
  /** Of each open parenthesis, whether it holds a subquery. */
  const open: boolean[] = []
  const isBlock = () => open.at(-1) ?? true
  const newLine = (more = 0) => {
    out = `${out.trimEnd()}\n${'  '.repeat(open.filter(Boolean).length + more)}`
  }
  while (at < sql.length) {
    const quoted = take(sql, at, /'(?:[^']|'')*'|"(?:[^"]|"")*"/y)
    const clause = isBlock() ? take(sql, at, /\s+(?:FROM|WHERE|JOIN|CROSS JOIN)\b/y) : undefined
    if (quoted !== undefined) {
      out += quoted
      at += quoted.length
    } else if (clause !== undefined) {
      newLine()
      out += clause.trim()
      at += clause.length
    } else {
      const character = sql[at] ?? ''
      at += 1
      if (character === '(') {
        const opensBlock = take(sql, at, /\s*SELECT\b/y) !== undefined
        open.push(opensBlock)
        out += character
        if (opensBlock) newLine()
      } else if (character === ')') {
        if (open.pop() === true) newLine()
        out += character
      } else {
        out += character
        if (character === ',' && isBlock()) {
          newLine(1)
          at += take(sql, at, /\s+/y)?.length ?? 0
        }
      }
    }
  }
  return out
}

function take(sql: string, at: number, pattern: RegExp): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(sql)?.[0]
}
