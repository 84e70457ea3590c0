/** Shows where in an expression a problem is. */
import { Buffer } from 'node:buffer'
import { originalIndex, withQuotedFields } from './envelope-fields.ts'

/** The characters of a line that are shown. */
const shownMax = 80

/** Returns the line of the expression with a caret below the place. `at` counts bytes of the text that was parsed. */
export function excerptOf(expression: string, at: number): string {
  const before = Buffer.from(withQuotedFields(expression)).subarray(0, Math.max(0, at)).toString()
  const index = originalIndex(expression, before.length)
  const start = expression.lastIndexOf('\n', index - 1) + 1
  const [line = ''] = expression.slice(start).split('\n')
  const column = Math.min(index - start, line.length)
  const from = line.length <= shownMax ? 0 : Math.max(0, Math.min(column - shownMax / 2, line.length - shownMax))
  const shown = line.slice(from, from + shownMax).toWellFormed()
  const [left, right] = [from > 0 ? '…' : '', from + shownMax < line.length ? '…' : '']
  return `${left}${shown}${right}\n${' '.repeat(left.length + column - from)}^`
}
