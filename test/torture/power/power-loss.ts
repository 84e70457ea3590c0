/**
 * Puts a directory into a state that a power loss allows: everything synced, and a random part of what was not.
 *
 * Law: the processes that wrote the journals are dead. Unsynced bytes are kept or lost for each sector of 512 bytes, and a size that was
 * not synced may be any on the way. Names that depend on each other keep their order: a prefix of their changes survives. Others are independent.
 */
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Random } from '../random.ts'
import type { JournalEntry } from './recording-files.ts'

const sectorBytes = 512

type Op<Name extends JournalEntry['op']> = Extract<JournalEntry, { readonly op: Name }>
type NameChange = Op<'create' | 'link' | 'remove'> | Op<'rename'> | Op<'makeDirectory' | 'removeDirectory'>
type DataChange = Op<'write'> | Op<'truncate'>

export type Loss = { readonly names: number; readonly files: number; readonly sectors: number }

/** Only files in `directory` that `covers` accepts were journaled. Others may have the inode of a removed one. */
export function losePower(
  { directory, covers }: { readonly directory: string; readonly covers: (path: string) => boolean },
  journals: readonly string[],
  random: Random,
): Loss {
  const entries = journals.flatMap(readJournal).toSorted((a, b) => a.at - b.at)
  const lost = losingChanges(pendingNames(entries), random)
  for (const change of lost.toSorted((a, b) => b.at - a.at)) undo(change)
  const data = pendingData(entries)
  let files = 0
  let sectors = 0
  for (const path of filesBelow(directory).filter(covers)) {
    const changes = data.get(lstatSync(path).ino)
    if (changes === undefined) continue
    sectors += loseData(path, changes, random)
    files += 1
  }
  return { names: lost.length, files, sectors }
}

function readJournal(path: string): readonly JournalEntry[] {
  // The last line may be cut off: its process was killed while writing it, before the effect.
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line): JournalEntry => JSON.parse(line))
}

/** Returns the changes of names that no directory fsync covers. */
function pendingNames(entries: readonly JournalEntry[]): readonly NameChange[] {
  const durableUntil = new Map<string, number>()
  for (const entry of entries) {
    if (entry.op !== 'directorySynced') continue
    durableUntil.set(entry.path, Math.max(entry.since, durableUntil.get(entry.path) ?? 0))
  }
  return entries.filter((entry): entry is NameChange => {
    if (entry.op === 'write' || entry.op === 'truncate' || entry.op === 'synced' || entry.op === 'directorySynced') return false
    return entry.at >= (durableUntil.get(dirname(entry.path)) ?? 0)
  })
}

function pendingData(entries: readonly JournalEntry[]): ReadonlyMap<number, readonly DataChange[]> {
  const pending = new Map<number, DataChange[]>()
  for (const entry of entries) {
    // The inode of a removed file may be used again.
    if (entry.op === 'create') pending.delete(entry.inode)
    if (entry.op === 'write' || entry.op === 'truncate') pending.set(entry.inode, [...(pending.get(entry.inode) ?? []), entry])
    if (entry.op !== 'synced') continue
    const left = (pending.get(entry.inode) ?? []).filter(({ at }) => at >= entry.since)
    if (left.length > 0) pending.set(entry.inode, left)
    else pending.delete(entry.inode)
  }
  return pending
}

/** Changes that share a name form a chain, of which a random end is lost. */
function losingChanges(changes: readonly NameChange[], random: Random): readonly NameChange[] {
  let chains: { readonly names: Set<string>; readonly changes: NameChange[] }[] = []
  for (const change of changes) {
    const names = new Set('to' in change ? [change.path, change.to] : [change.path])
    const linked = chains.filter((chain) => !chain.names.isDisjointFrom(names))
    const chain = {
      names: linked.reduce((all, other) => all.union(other.names), names),
      changes: [...linked.flatMap((other) => other.changes), change].toSorted((a, b) => a.at - b.at),
    }
    chains = [...chains.filter((other) => !linked.includes(other)), chain]
  }
  return chains.flatMap((chain) => chain.changes.slice(random.between(0, chain.changes.length)))
}

/** Takes back one change. A process that was killed right after it announced a change may not have made it: then nothing happens. */
function undo(change: NameChange): void {
  const { path } = change
  switch (change.op) {
    case 'create':
    case 'link':
      if (inodeAt(path) === change.inode) rmSync(path)
      return
    case 'remove':
      if (!existsSync(path)) restore(change.grave, path)
      return
    case 'rename':
      if (inodeAt(change.to) !== change.inode) return
      if (existsSync(dirname(path))) renameSync(change.to, path)
      restore(change.grave, change.to)
      return
    case 'makeDirectory':
      rmSync(path, { recursive: true, force: true })
      return
    case 'removeDirectory':
      if (existsSync(dirname(path))) mkdirSync(path, { recursive: true })
  }
}

function restore(grave: string | undefined, path: string): void {
  if (grave !== undefined && existsSync(grave) && existsSync(dirname(path))) linkSync(grave, path)
}

/** Returns the number of sectors that were lost. */
function loseData(path: string, changes: readonly DataChange[], random: Random): number {
  const now = readFileSync(path)
  let durable: Buffer = Buffer.from(now)
  for (const change of changes.toReversed()) durable = before(durable, change)
  const dirty = new Set(changes.flatMap((change) => [...sectorsOf(change)]))
  const [least, most] = [Math.min(durable.length, now.length), Math.max(durable.length, now.length)]
  const after = resized(durable, random.pick([durable.length, now.length, random.between(least, most)]))
  // Often all or nothing reaches the disk, sometimes a part.
  const share = random.pick([0, 0.5, 1])
  let lost = 0
  for (const sector of dirty) {
    const start = sector * sectorBytes
    if (start < Math.min(after.length, now.length) && random.share() < share)
      now.copy(after, start, start, Math.min(start + sectorBytes, after.length))
    else lost += 1
  }
  writeFileSync(path, after)
  return lost
}

function before(bytes: Buffer, change: DataChange): Buffer {
  const old = Buffer.from(change.before, 'base64')
  const position = change.op === 'write' ? change.position : change.to
  const restored = resized(bytes, change.size)
  old.copy(restored, position)
  return restored
}

function* sectorsOf(change: DataChange): Iterable<number> {
  const start = change.op === 'write' ? change.position : change.to
  const end = change.op === 'write' ? change.position + change.bytes : change.to + 1
  for (let sector = Math.floor(start / sectorBytes); sector * sectorBytes < end; sector += 1) yield sector
}

function resized(bytes: Buffer, size: number): Buffer {
  const result = Buffer.alloc(size)
  bytes.copy(result, 0, 0, Math.min(size, bytes.length))
  return result
}

function inodeAt(path: string): number | undefined {
  return existsSync(path) ? lstatSync(path).ino : undefined
}

function filesBelow(directory: string): readonly string[] {
  if (!existsSync(directory)) return []
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}
