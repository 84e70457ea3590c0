/** Compares two texts line by line. */
import { structuredPatch } from 'diff'
import { setupLimits } from './kinds/limits.ts'

export type DiffLine = { readonly mark: ' ' | '+' | '-' | '…'; readonly text: string }

/** Lines around a change that are shown. */
const context = 2

/** Returns what differs, with some lines around it. Lines that are left out are one line with the mark `…`. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, next] = [linesOf(before), linesOf(after)]
  const options = { context, maxEditLength: setupLimits.diffLinesMax }
  const patch = structuredPatch('', '', `${old.join('\n')}\n`, `${next.join('\n')}\n`, '', '', options)
  if (patch === undefined)
    return [...old.map((text) => ({ mark: '-', text }) as const), ...next.map((text) => ({ mark: '+', text }) as const)]
  let shown = 0
  const lines = patch.hunks.flatMap(({ oldStart, oldLines, lines: changed }) => {
    // A hunk of no old lines names the line before it.
    const first = oldLines === 0 ? oldStart : oldStart - 1
    const isGap = first > shown
    shown = first + oldLines
    return [...(isGap ? [leftOut] : []), ...changed.map(toLine)]
  })
  return shown < old.length ? [...lines, leftOut] : lines
}

const leftOut: DiffLine = { mark: '…', text: '' }

function linesOf(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n')
}

function toLine(line: string): DiffLine {
  const [mark = ' '] = line
  return { mark: mark === '+' || mark === '-' ? mark : ' ', text: line.slice(1) }
}
