/** The files that the node still has, with the records in them, and why they are there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { RecordName } from './bucket-contents.ts'
import type { Leftover } from './law.ts'
import { recordsIn } from './ledger.ts'

const segmentPattern = /\.(wal|open|poisoned|salvage|quarantine)$/

/** Returns the paths of all segment files. Some may be gone at once. */
export function findSegments(wal: string): readonly string[] {
  if (!existsSync(wal)) return []
  return readdirSync(wal).flatMap((log) => {
    try {
      return readdirSync(join(wal, log))
        .filter((name) => segmentPattern.test(name))
        .map((name) => join(wal, log, name))
    } catch {
      return []
    }
  })
}

/** Returns the segments and the waiting commits. `reasons` says why a segment is on the node, by path. */
export function findLeftovers(data: string, reasons: ReadonlyMap<string, string>): readonly Leftover[] {
  const wal = join(data, 'node/wal')
  const segments = findSegments(wal).map((path) => {
    return { path, log: basename(dirname(path)), reason: reasons.get(path), records: recordsOf(path) }
  })
  const waiting = findWaitingCommits(data).map((path) => ({ path, log: '', reason: undefined, records: new Set<RecordName>() }))
  return [...segments, ...waiting]
}

/** Returns the commits that control has not recorded yet. */
export function findWaitingCommits(data: string): readonly string[] {
  const outbox = join(data, 'node/outbox')
  const names = existsSync(outbox) ? readdirSync(outbox, { recursive: true, encoding: 'utf8' }) : []
  return names.filter((name) => name.endsWith('.json')).map((name) => join(outbox, name))
}

function recordsOf(path: string): ReadonlySet<RecordName> {
  try {
    return new Set([...recordsIn(readFileSync(path, 'latin1'))].map(({ id, index }) => `${id}/${index}`))
  } catch {
    return new Set()
  }
}
