/** Laws of damage: none of it is silent, and none is counted that cannot be. */
import { dataPaths } from '#config/data-paths.ts'
import type { Disk } from './disk.ts'

/** The disk of the node, and then the one of a machine which adopted a copy of it. */
export type Disks = readonly [Disk, Disk | undefined]

/** A commit in the bucket, as far as damage is concerned. */
type Counting = {
  readonly id: string
  readonly records: number
  readonly records_damaged: number
  readonly endpoint_id: string
  readonly log: string
  readonly seq: number
  readonly adoption?: string
}

const { wal } = dataPaths('/data')

/** Commits that count more records as damaged than the damage can have taken, or other ones than are missing. */
export function miscounted([own, adopted]: Disks, markers: readonly Counting[]): readonly string[] {
  return markers.flatMap((marker) => {
    const { id, records, records_damaged: damaged, adoption } = marker
    const { rot } = (adoption === undefined ? undefined : adopted) ?? own
    const { records: taken = new Map<string, number>(), total } = rot.taken.get(segmentOf(marker)) ?? {}
    const most = taken.values().reduce((sum, copies) => sum + copies, 0)
    if (damaged > most) return [`${id}: ${damaged} records are damaged, but ${most} can be`]
    // Exact as long as the footer tells how many there were.
    return total === undefined || records + damaged === total
      ? []
      : [`${id}: ${records} records and ${damaged} damaged of ${total}`]
  })
}

/** Records that damage can have taken, in segments of which a commit counts damage or a damaged file is kept. */
export function shownAsDamaged(disks: Disks, markers: readonly Counting[]): ReadonlySet<string> {
  const counting = new Set(markers.flatMap((marker) => (marker.records_damaged > 0 ? [segmentOf(marker)] : [])))
  const isShown = (segment: string) => counting.has(segment) || disks.some((disk) => has(disk, segment, 'quarantine'))
  const taken = disks.flatMap((disk) => [...(disk?.rot.taken ?? [])])
  return new Set(taken.flatMap(([segment, { records }]) => (isShown(segment) ? [...records.keys()] : [])))
}

/** The report of a commit was damaged, and of its segment nothing is left to make it from again. */
export function isSetAside(marker: Counting, disks: Disks): boolean {
  const segment = segmentOf(marker)
  return disks.some((disk) => disk?.rot.taken.has(segment) && has(disk, segment, 'quarantine') && !has(disk, segment, 'wal'))
}

/** Whether the file of a bucket is one of a segment that was damaged. */
export function isOfDamaged(key: string, disks: Disks): boolean {
  const objectOf = (segment: string) => nameOf(segment).replace(/^.*\/(\d{12})-(.*)$/, '-$2-$1')
  return disks.some((disk) => disk?.rot.taken.keys().some((segment) => key.includes(objectOf(segment))))
}

/**
 * Segments in quarantine although no disk was damaged. Of two machines with one log, the one whose disk was copied keeps there what the commit of
 * the other one lacks.
 */
export function setAsideInVain([own, adopted]: Disks, isRestored: boolean): readonly string[] {
  const disk = adopted === undefined ? own : isRestored ? adopted : undefined
  if (disk === undefined || [own, disk].some(({ rot }) => rot.taken.size > 0 || rot.paths.size > 0)) return []
  const names = segmentFiles(disk).filter((name) => name.endsWith('.quarantine'))
  return names.map((name) => `${name} is set aside, and nothing was damaged`)
}

/** Names of the files of segments, under that of their log. */
export function segmentFiles(disk: Disk): readonly string[] {
  return disk
    .list(wal)
    .filter(({ kind, name }) => kind === 'directory' && name.includes('-'))
    .flatMap(({ name }) => disk.list(`${wal}/${name}`).map((file) => `${name}/${file.name}`))
    .filter((name) => /\/\d{12}-/.test(name))
}

function has(disk: Disk | undefined, segment: string, suffix: string): boolean {
  return disk?.find(`${wal}/${nameOf(segment)}.${suffix}`) !== undefined
}

/** The name under which damage is known. */
function segmentOf({ endpoint_id, seq, log }: Counting): string {
  return `${endpoint_id}/${seq}-${log}`
}

/** The name of its files. */
function nameOf(segment: string): string {
  return segment.replace(/\/(\d+)-/, (_, seq: string) => `/${seq.padStart(12, '0')}-`)
}
