/** Names of segments on the command line: `<log>/<seq>-<incarnation>`, `<log>` for all of a log, or the commit id that log lines have. */
import { UsageError } from '../terminal/context.ts'
import type { NodeSegment } from './node-segments.ts'

const namePattern = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\/0*(\d+)-([a-z0-9]{10}))?(?:\.\w+)?$/

const commitIdPattern = /^.+-([a-z0-9]{10})-(\d{12,})$/

/** Returns the segments that the names stand for, each once. Throws UsageError for a name of no segment. */
export function selectSegments(segments: readonly NodeSegment[], names: readonly string[]): readonly NodeSegment[] {
  const selected = new Set<NodeSegment>()
  for (const name of names) {
    const found = segments.filter(matcherOf(name))
    if (found.length === 0) throw new UsageError(`${name}: no such segment or log on this node; list them with: inlet segments`)
    for (const segment of found) selected.add(segment)
  }
  return [...selected]
}

function matcherOf(name: string): (segment: NodeSegment) => boolean {
  const [, ofLog, ofSeq] = commitIdPattern.exec(name) ?? []
  if (ofLog !== undefined) return ({ incarnation, seq }) => incarnation === ofLog && seq === Number(ofSeq)
  const [, log, seq, incarnation] = namePattern.exec(name) ?? []
  return (segment) => (seq === undefined ? segment.log === log : segment.name === `${log}/${seq}-${incarnation}`)
}
