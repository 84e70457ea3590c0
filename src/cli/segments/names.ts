/** Names of segments on the command line: `<log>/<seq>-<incarnation>`, or `<log>` for all of a log. */
import { UsageError } from '../context.ts'
import type { NodeSegment } from './node-segments.ts'

const namePattern = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\/0*(\d+)-([a-z0-9]{10}))?(?:\.\w+)?$/

/** Returns the segments that the names stand for, each once. Throws UsageError for a name of no segment. */
export function selectSegments(segments: readonly NodeSegment[], names: readonly string[]): readonly NodeSegment[] {
  const selected = new Set<NodeSegment>()
  for (const name of names) {
    const [, log, seq, incarnation] = namePattern.exec(name) ?? []
    const found = segments.filter((segment) =>
      seq === undefined ? segment.log === log : segment.name === `${log}/${seq}-${incarnation}`,
    )
    if (found.length === 0) throw new UsageError(`${name}: no such segment or log on this node; list them with: inlet segments`)
    for (const segment of found) selected.add(segment)
  }
  return [...selected]
}
