/** Laws that hold in every history. */
import { dataPaths } from '#config/data-paths.ts'
import type { Receipt } from '#ingest/gate/receipt.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { type Buckets, digest, isMarker } from './bucket.ts'
import { firstMachine, type SimulatedControl } from './control.ts'
import { findForgottenKeys, findUncopied } from './copy-laws.ts'
import { isOfDamaged, isSetAside, miscounted, segmentFiles, setAsideInVain, shownAsDamaged } from './damage-laws.ts'
import type { Disk } from './disk.ts'
import { wrongAddition, wrongOutcomes } from './view-laws.ts'
import { type Delivered, wrongWindows } from './window-laws.ts'

/** A request of a client, with the ids of its records. */
export type Sent = {
  /** The machine that it was sent to. */
  readonly machine: string
  readonly endpoint: string
  readonly ids: readonly string[]
  readonly lines: readonly string[]
  /** Under which it may be repeated. */
  readonly key: string | undefined
  /** How often it came so far that the node appended it, or looked for its key. */
  appends: number
  isAcknowledged: boolean
  /** One for each acknowledgement that has one. */
  readonly receipts: Receipt[]
}

export type State = {
  /** The disk of the node, and then the one of a machine which adopted a copy of it. */
  readonly disks: readonly [Disk, Disk | undefined]
  /** Machines beside it, which nobody replaces. */
  readonly others: readonly { readonly name: string; readonly disk: Disk }[]
  readonly buckets: Buckets
  readonly copyStore: Buckets | undefined
  readonly control: SimulatedControl
  readonly sent: readonly Sent[]
  /** Set if the machine that adopts has only what the copy store had, and whether it has that. */
  /** Records of these have two copies. */
  readonly copiedEndpoints: readonly string[]
  readonly restored: { readonly isDone: boolean } | undefined
  /** Whether a disk failed so that a node may have forgotten keys, as docs/ingest.md says. */
  readonly mayLackKeys: boolean
  /** Keys are forgotten after a day. */
  readonly isClockSteady: boolean
  /** The window of the views that have one. */
  readonly window: string | null
}

type ListedFile = { readonly key: string; readonly sha256: string; readonly rows: number }

type Marker = {
  readonly id: string
  readonly records: number
  readonly records_damaged: number
  readonly endpoint_id: string
  readonly node_id: string
  readonly sealed_at: string
  readonly adoption?: string
  readonly log: string
  readonly seq: number
  readonly artifacts: Readonly<Record<string, ListedFile>>
  readonly views: readonly ViewOutcome[]
}

/** The marker of what a backfill or a re-drive added to a commit. */
type Addition = Marker & { readonly commit_id: string; readonly from_version: number | null }

type Source = { readonly id: string; readonly first_row: number; readonly rows: number }

/** The marker of a compaction: it says where rows of other markers are now. */
type CompactionMarker = {
  readonly id: string
  readonly compacted: ListedFile & { readonly kind: string; readonly sources: readonly Source[] }
}

const { wal } = dataPaths('/data')

/** `left`: what is still to do. `broken`: laws that hold at any time, and those of the end if nothing is left. */
export function checkLaws(state: State): { readonly left: readonly string[]; readonly broken: readonly string[] } {
  const { buckets, control, sent, restored, others } = state
  const [own, adopted] = state.disks
  const disk = adopted ?? own
  const broken: string[] = []
  const { markers, counts, listed, delivered } = readBucket(buckets, adopted !== undefined, broken)
  if (state.window !== null) broken.push(...wrongWindows(delivered, state.window, state.isClockSteady))
  broken.push(...storedTooOften(counts, state))
  broken.push(...miscounted(state.disks, markers))
  for (const [key, contents] of buckets.markers)
    if (contents.size > 1 && control.commits.size > 0) brokenMarker(key, state, broken)
  for (const id of control.conflicts) broken.push(`the commit ${id} was reported with another content`)
  const segments = leftIn(disk)
  const isOf = (machine: string, { id }: Marker) => id.startsWith(control.ids.get(machine) ?? 'nobody')
  const isOfOthers = (marker: Marker) => others.some(({ name }) => isOf(name, marker))
  const ofFirst = markers.filter((marker) => !isOfOthers(marker))
  broken.push(...skipped(segments, ofFirst, adopted && own))
  for (const { name, disk: other } of others) {
    const ofOther = markers.filter((marker) => isOf(name, marker))
    broken.push(...skipped(leftIn(other), ofOther, undefined))
    segments.push(...leftIn(other).map((segment) => `${name}: ${segment}`))
  }
  // A machine that is fenced cannot report what it delivered before.
  const unrecorded = markers.filter(
    (marker) =>
      !control.commits.has(marker.id) &&
      !control.stored.has(marker.id) &&
      (adopted === undefined || marker.adoption !== undefined || isOfOthers(marker)) &&
      !isSetAside(marker, state.disks),
  )
  const left = [...segments, ...unrecorded.map(({ id }) => `report of ${id}`)]
  if (restored?.isDone === false) left.push('a takeover')
  broken.push(...setAsideInVain(state.disks, restored !== undefined))
  const copied = sent.filter(({ endpoint }) => state.copiedEndpoints.includes(endpoint))
  // Copies of damaged segments go with what is left of them.
  if (state.copyStore !== undefined && own.rot.taken.size === 0)
    broken.push(...findUncopied(state.copyStore, copied, (line) => counts.has(line)))
  if (state.copyStore !== undefined && adopted === undefined && state.isClockSteady && !state.mayLackKeys)
    broken.push(...findForgottenKeys(state.copyStore, copied))
  if (left.length === 0) {
    const damaged = shownAsDamaged(state.disks, markers)
    // Records with one copy are lost with a disk, and stay on that of a machine that lost its place.
    const isElsewhere = (endpoint: string, id: string) =>
      restored === undefined ? adopted !== undefined && own.holds(`"${id}"`) : !state.copiedEndpoints.includes(endpoint)
    for (const { machine, endpoint, ids, lines, isAcknowledged } of sent)
      for (const [at, id] of ids.entries()) {
        const isExcused = damaged.has(id) || (machine === firstMachine && isElsewhere(endpoint, id))
        if (isAcknowledged && !counts.has(lines[at] ?? '') && !isExcused)
          broken.push(`record ${id} was acknowledged, and is lost`)
      }
    // A job may be about to write the marker of a file of a view.
    broken.push(...unlisted(state, listed).flatMap((key) => (viewFile.test(key) ? [] : [`no marker lists ${key}`])))
  }
  return { left, broken }
}

/** A request is stored as often as it was sent without a key, and once with one: of those with the same key, one is. */
function storedTooOften(counts: ReadonlyMap<string, number>, { sent, mayLackKeys }: State): readonly string[] {
  const broken: string[] = []
  const known = new Set(sent.flatMap(({ lines }) => lines))
  for (const row of counts.keys()) if (!known.has(row)) broken.push(`record ${row} was never sent`)
  const holders = new Map<string, string>()
  for (const { endpoint, lines, key, appends } of sent) {
    const most = key === undefined || mayLackKeys ? appends : 1
    for (const row of lines) {
      const count = counts.get(row) ?? 0
      if (count > most) broken.push(`record ${row}, sent ${appends} times, is in ${count} rows`)
    }
    const [first = ''] = lines
    if (key === undefined || mayLackKeys || !counts.has(first)) continue
    const other = holders.get(`${endpoint} ${key}`)
    if (other !== undefined) broken.push(`records ${other} and ${first} were stored under one key`)
    holders.set(`${endpoint} ${key}`, first)
  }
  return broken
}

/** Follows each receipt, once all is delivered: it must lead to the commit that has the records. */
export async function findWrongReceipts({ disks: [own, adopted], buckets, control, sent }: State): Promise<readonly string[]> {
  // Records that a machine acknowledged before it lost its place may be on its disk only. Others may be damaged.
  const isUnsure = adopted !== undefined || own.rot.taken.size > 0
  const { rows } = readBucket(buckets, false, [])
  const commits = new Map<string, string | null | undefined>()
  const broken: string[] = []
  for (const { machine, endpoint, ids, lines, receipts } of sent) {
    if (isUnsure && machine === firstMachine) continue
    for (const { seq } of receipts) {
      const name = `${machine} ${endpoint} ${seq}`
      if (!commits.has(name)) commits.set(name, (await control.followReceipt(machine, endpoint, seq))?.commit_id)
      const found = rows.get(commits.get(name) ?? '') ?? []
      if (!lines.every((line) => found.includes(line))) broken.push(`the receipt of ${ids[0]} leads to ${commits.get(name)}`)
    }
  }
  return broken
}

/** Reads everything as docs/readers.md says. `counts`: rows by record. `listed`: the keys that markers list. */
function readBucket({ objects }: Buckets, isAdopted: boolean, broken: string[]) {
  const all = [...objects].flatMap(([key, body]) =>
    isMarker(key) ? [JSON.parse(body.toString()) as Marker | Addition | CompactionMarker] : [],
  )
  const markers = all.filter((marker): marker is Marker => !('compacted' in marker) && !('commit_id' in marker))
  const additions = all.filter((marker) => 'commit_id' in marker)
  const compactions = all.filter((marker) => 'compacted' in marker)
  const counts = new Map<string, number>()
  const listed = new Set<string>()
  // Two machines with one log may have sealed a segment on different days: then it has two markers with one id, of which a reader takes one.
  const readOf = new Map<string, ReadonlySet<string>>()
  const moved = new Map<string, Source & { readonly file: ListedFile }>()
  const readListed = (id: string, { key, sha256 }: ListedFile): readonly string[] => {
    const found = contentOf(objects.get(key))
    if (found?.sha256 !== sha256) broken.push(`${id}: ${key} is not what the marker lists`)
    return found?.rows ?? []
  }
  for (const { id, compacted: file } of compactions) {
    listed.add(file.key)
    for (const source of file.sources) {
      const name = `${file.kind} ${source.id}`
      if (moved.has(name)) broken.push(`${id}: ${name} is in another compaction, too`)
      moved.set(name, { ...source, file })
    }
  }
  const readerOf = ({ id, artifacts }: Pick<Marker, 'id' | 'artifacts'>) => {
    for (const { key } of Object.values(artifacts)) listed.add(key)
    return (kind: string): readonly string[] => {
      const place = moved.get(`${kind} ${id}`)
      if (place !== undefined) return readListed(id, place.file).slice(place.first_row, place.first_row + place.rows)
      const file = artifacts[kind]
      return file === undefined ? [] : readListed(id, file)
    }
  }
  const rows = new Map<string, readonly string[]>()
  const delivered: Delivered[] = []
  for (const marker of markers) {
    const { id, records, artifacts, views } = marker
    const rowsOf = readerOf({ id, artifacts })
    const ids = rowsOf('parquet')
    broken.push(...wrongOutcomes({ id, views, records: ids, rowsOf }))
    delivered.push({ ...marker, records: ids, rowsOf })
    if (ids.length !== records) broken.push(`${id}: ${records} records, but ${ids.length} rows`)
    const others = isAdopted ? (readOf.get(id) ?? new Set<string>()) : new Set<string>()
    for (const each of ids) if (!others.has(each)) counts.set(each, (counts.get(each) ?? 0) + 1)
    readOf.set(id, new Set([...others, ...ids]))
    rows.set(id, ids)
  }
  for (const addition of additions) {
    const rowsOf = readerOf(addition)
    const commit = markers.find(({ id }) => id === addition.commit_id)
    // Two markers of one id have different records.
    if (!isAdopted)
      broken.push(...wrongAddition({ ...addition, rowsOf }, commit?.views ?? [], rows.get(addition.commit_id) ?? []))
  }
  return { markers, counts, listed, rows, delivered }
}

function isMerged(key: string): boolean {
  return key.includes('/compacted/')
}

/** Compares the compactions that control knows with those in the bucket, once no job runs. */
export function findWrongCompactions({ objects }: Buckets, known: readonly string[]): readonly string[] {
  const published = [...objects].flatMap(([key, body]) => {
    const marker = isMarker(key) ? (JSON.parse(body.toString()) as Marker | CompactionMarker) : undefined
    return marker !== undefined && 'compacted' in marker ? [marker.compacted.key] : []
  })
  const files = [...objects.keys()].filter(isMerged)
  return [
    ...files.filter((key) => !published.includes(key)).map((key) => `no marker lists ${key}`),
    ...known.filter((key) => !published.includes(key)).map((key) => `control has the merged file ${key}, and no marker lists it`),
    ...published.filter((key) => !known.includes(key)).map((key) => `control does not know the merged file ${key}`),
  ]
}

/** Files of views that no marker lists, once no job runs. Returns what is wrong, in words. */
export function findUnlistedOfViews(state: State): readonly string[] {
  const { buckets, disks } = state
  const { listed, markers } = readBucket(buckets, disks[1] !== undefined, [])
  return unlisted(state, listed).flatMap((key) =>
    viewFile.test(key) && !isOfDetachedView(key, markers) ? [`no marker lists ${key}`] : [],
  )
}

/** Whether the segment was delivered without the view: it was detached after a delivery that died had uploaded the file. */
function isOfDetachedView(key: string, markers: readonly Marker[]): boolean {
  const [, name, version, id] =
    /\/(?:views|dlq)\/([^/]+)\/v(\d+)\/.*\/([^/]+?)(?:-[0-9a-f]{8})?\.(?:parquet|ndjson\.gz)$/.exec(key) ?? []
  const views = markers.find((marker) => marker.id === id)?.views
  return views !== undefined && !views.some((view) => view.view_name === name && String(view.view_version) === version)
}

/** The key of a file of a view. */
const viewFile = /\/(?:views|dlq)\//

/**
 * Returns the files that no marker lists, and should. A damaged segment may have been uploaded before under another name, or as one of which
 * nothing is left by now.
 */
function unlisted({ buckets, disks, control }: State, listed: ReadonlySet<string>): readonly string[] {
  return [...buckets.objects.keys()].filter(
    (key) =>
      !isMarker(key) &&
      !isMerged(key) &&
      !listed.has(key) &&
      (disks[1] === undefined || adoptedKey.test(key)) &&
      !isOfReadMarker(key, control) &&
      !isOfDamaged(key, disks),
  )
}

/**
 * Whether control has the commit only from its marker. Then an adopting machine that died in the middle of the delivery finds it recorded: it
 * removes the segment, and does not know which files it had uploaded.
 */
function isOfReadMarker(key: string, { commits, stored }: SimulatedControl): boolean {
  const id = /\/([^/]+)-[0-9a-f]{8}\.parquet$/.exec(key)?.[1]
  return id !== undefined && stored.has(id) && !commits.has(id)
}

/** The key of a file of an adoption. A machine that is fenced in the middle of a delivery leaves one of its own. */
const adoptedKey = /-[0-9a-f]{8}\.parquet$/

/** Sealed segments whose log has a commit of a later one. Another machine with the log may have set its damaged copy aside, and gone on. */
function skipped(left: readonly string[], markers: readonly Marker[], others: Disk | undefined): readonly string[] {
  const committed = new Set(markers.map(({ id }) => id))
  const last = new Map<string, number>()
  for (const { endpoint_id: log, seq } of markers) last.set(log, Math.max(seq, last.get(log) ?? -1))
  return left.flatMap((name) => {
    const [, log = '', seq = '', incarnation] = /^(.+)\/(\d{12})-(.+)\.wal$/.exec(name) ?? []
    const isCommitted = [...committed].some((id) => id.endsWith(`-${incarnation}-${seq}`))
    const isSetAside = others?.list(`${wal}/${log}`).some((file) => file.name === `${seq}-${incarnation}.quarantine`) === true
    return log === '' || isCommitted || isSetAside || Number(seq) >= (last.get(log) ?? -1) ? [] : [`${name} was passed over`]
  })
}

/** A marker may be written again only as long as nobody was told of the commit. */
function brokenMarker(key: string, { buckets, control }: State, broken: string[]): void {
  const body = buckets.objects.get(key)
  const commit = [...control.commits.values()].find(({ artifacts }) => artifacts['manifest']?.key === key)
  if (body !== undefined && commit !== undefined && commit.artifacts['manifest']?.sha256 !== digest(body))
    broken.push(`${key} is not the marker that control has`)
}

type Content = { readonly sha256: string; readonly rows: readonly string[] }

/** By body: the laws are checked often, and each put is a body of its own. */
const contents = new WeakMap<Buffer, Content>()

function contentOf(body: Buffer | undefined): Content | undefined {
  const known = body && contents.get(body)
  if (body === undefined || known !== undefined) return known
  const text = body.toString()
  const content = { sha256: digest(body), rows: text === '' ? [] : text.split('\n') }
  contents.set(body, content)
  return content
}

/** A stop of ingest seals every segment, unless the disk fails. Returns what is wrong, in words. */
export function findUnsealed(disk: Disk): readonly string[] {
  if (disk.hasFailedIn(wal) || disk.rot.paths.size > 0) return []
  return leftIn(disk).flatMap((name) => (name.endsWith('.open') ? [`${name} is open after a stop`] : []))
}

/** Segments that are not delivered. */
function leftIn(disk: Disk): string[] {
  return segmentFiles(disk).filter((name) => !name.includes('.quarantine'))
}
