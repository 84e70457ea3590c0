/**
 * Damaged originals that are kept for a person to look at: `<seq>-<incarnation>.quarantine`, and a note beside it, `….quarantine.json`.
 *
 * Owns: both files. Does not own: which file is quarantined.
 * Law: an original that is kept already is never replaced. It has every frame that a later copy of its intact frames has.
 */
import { Buffer } from 'node:buffer'
import { dirname, join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorCode, type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import type { QuarantineNote, SegmentRef } from '../../segment-source.ts'
import { segmentName } from '../format/segment-file.ts'
import type { Damage } from '../read/frame-scan.ts'

const noteSuffix = '.quarantine.json'

/** Gives the file its second name, `.quarantine`, and writes the note. Both are durable then. Idempotent. Returns the new path. */
export async function keepOriginal(
  files: Files,
  clock: Clock,
  path: string,
  identity: SegmentRef,
  { reason, damage, lostRecords }: { readonly reason: string; readonly damage: readonly Damage[]; readonly lostRecords: number },
): Promise<string> {
  const kept = join(dirname(path), segmentName(identity, 'quarantine'))
  const isKept = await files.link(path, kept).then(
    () => false,
    (error: unknown) => {
      if (errorCode(error) === 'EEXIST') return true
      throw error
    },
  )
  // A note without a file is about one that somebody removed.
  const earlier = isKept ? await readQuarantineNote(files, kept) : undefined
  const note: QuarantineNote = {
    ...(earlier ?? { reason, at: isoTimestamp(clock.now()), damage }),
    records_lost: Math.max(lostRecords, earlier?.records_lost ?? 0),
  }
  await noteQuarantine(files, kept, note)
  return kept
}

/** Writes the note. It and the name of the quarantined file are durable then. */
export async function noteQuarantine(files: Files, quarantinePath: string, note: QuarantineNote): Promise<void> {
  await writeDurably(files, quarantineNotePath(quarantinePath), Buffer.from(`${JSON.stringify(note, null, 1)}\n`))
}

/** Returns the note of a quarantined file, or undefined if there is none or it is damaged. */
export async function readQuarantineNote(files: Files, quarantinePath: string): Promise<QuarantineNote | undefined> {
  const bytes = await files.read(quarantineNotePath(quarantinePath))
  const note = bytes === undefined ? undefined : parseJson(Buffer.from(bytes).toString('utf8'))
  if (typeof note !== 'object' || note === null) return undefined
  const { reason, at, damage, records_lost } = note as Partial<QuarantineNote>
  if (typeof reason !== 'string' || typeof at !== 'string' || !Array.isArray(damage) || typeof records_lost !== 'number')
    return undefined
  return { reason, at, damage, records_lost }
}

/** Returns the notes whose files are gone: somebody removed only the files. */
export function findStrayNotes(names: ReadonlySet<string>): readonly string[] {
  return [...names].filter((name) => name.endsWith(noteSuffix) && !names.has(name.slice(0, -'.json'.length)))
}

export function quarantineNotePath(quarantinePath: string): string {
  return `${quarantinePath}.json`
}
