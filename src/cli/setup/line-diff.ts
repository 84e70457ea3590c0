/** Compares two texts line by line. */
import { setupLimits } from './limits.ts'

export type DiffLine = { readonly mark: ' ' | '+' | '-' | '…'; readonly text: string }

/** Lines around a change that are shown. */
const around = 2

/** Returns what differs, with some lines around it. Lines that are left out are one line with the mark `…`. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, next] = [linesOf(before), linesOf(after)]
  return shorten(compare(old, next))
}

function linesOf(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n')
}

/** By the longest common subsequence of lines, after what is equal at both ends. */
function compare(old: readonly string[], next: readonly string[]): readonly DiffLine[] {
  let start = 0
  while (start < Math.min(old.length, next.length) && old[start] === next[start]) start++
  let end = 0
  while (end < Math.min(old.length, next.length) - start && old.at(-1 - end) === next.at(-1 - end)) end++
  const [a, b] = [old.slice(start, old.length - end), next.slice(start, next.length - end)]
  return [
    ...old.slice(0, start).map((text) => ({ mark: ' ', text }) as const),
    ...compareMiddle(a, b),
    ...old.slice(old.length - end).map((text) => ({ mark: ' ', text }) as const),
  ]
}

function compareMiddle(a: readonly string[], b: readonly string[]): readonly DiffLine[] {
  const removed = (text: string): DiffLine => ({ mark: '-', text })
  const added = (text: string): DiffLine => ({ mark: '+', text })
  if (a.length > setupLimits.diffLinesMax || b.length > setupLimits.diffLinesMax) return [...a.map(removed), ...b.map(added)]
  const width = b.length + 1
  /** Length of the longest common subsequence of the rest of both, from each pair of places. */
  const common = new Uint16Array((a.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = a.length - 1; row >= 0; row--) {
    for (let column = b.length - 1; column >= 0; column--)
      common[row * width + column] =
        a[row] === b[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  }
  const lines: DiffLine[] = []
  let [row, column] = [0, 0]
  while (row < a.length || column < b.length) {
    const [left, right] = [a[row], b[column]]
    if (left !== undefined && left === right) {
      lines.push({ mark: ' ', text: left })
      row++
      column++
    } else if (left !== undefined && (right === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push(removed(left))
      row++
    } else {
      lines.push(added(right ?? ''))
      column++
    }
  }
  return lines
}

function shorten(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = new Set(
    lines.flatMap(({ mark }, index) =>
      mark === ' ' ? [] : Array.from({ length: 2 * around + 1 }, (_, n) => index - around + n),
    ),
  )
  return lines.flatMap((line, index) => {
    if (isNear.has(index)) return [line]
    return index === 0 || isNear.has(index - 1) ? [{ mark: '…', text: '' } as const] : []
  })
}
