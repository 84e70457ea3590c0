/**
 * The law that a round must keep. Pure: everything that was observed comes in, the violations come out.
 *
 * Law: every acknowledged record is committed, as often as it was acknowledged and not more often than it was sent; or the node lists it with
 * a reason. Without a reason nothing is left on the node. Markers, commits and counters agree. No process ended by itself.
 */
import type { Commit } from '../support/api-client.ts'
import type { Delivered, RecordName } from './bucket-contents.ts'
import type { Damage, Sent } from './ledger.ts'
import { listSome } from './text.ts'

export type Finding = { readonly law: string; readonly text: string }

/** Records of an endpoint that are still on the node. */
export type Leftover = {
  readonly path: string
  /** The endpoint, or empty for a commit that waits for control. */
  readonly log: string
  /** Why it is there, as `inlet segments` says; undefined if nothing says so. */
  readonly reason: string | undefined
  /** Records that it contains. */
  readonly records: ReadonlySet<RecordName>
}

export type ObservedEndpoint = {
  readonly id: string
  readonly delivered: readonly Delivered[]
  /** Undefined for a deleted endpoint: the API does not know it any more. */
  readonly commits: readonly Commit[] | undefined
  /** `processed`, `accepted` and `dlq` by view, as the metrics of the API count them. */
  readonly counters: ReadonlyMap<string, ViewCount> | undefined
  readonly status: string | undefined
  readonly statusReasons: readonly string[]
  /** Whether the harness deleted it. */
  readonly isDeleted: boolean
  /** Whether its log still has a directory on the node. */
  readonly hasDirectory: boolean
}

export type ViewCount = { readonly processed: number; readonly accepted: number; readonly dlq: number }

export type Observed = {
  readonly sent: readonly Sent[]
  /** Requests that the harness damaged, by id. */
  readonly damaged: ReadonlyMap<number, Damage>
  readonly endpoints: readonly ObservedEndpoint[]
  readonly leftovers: readonly Leftover[]
  /** Misbehaviour of healthy processes. */
  readonly troubles: readonly string[]
}

export type Judgement = {
  readonly findings: readonly Finding[]
  readonly committedRecords: number
  readonly deadLetters: number
  /** Records that are missing because the harness damaged them. */
  readonly lostToDamage: readonly RecordName[]
  /** Acknowledged records that are not committed, but listed with a reason. */
  readonly listedRecords: number
}

export function judge(observed: Observed): Judgement {
  const copies = countCopies(observed.endpoints)
  const records = judgeRecords(observed, copies)
  const findings = [
    ...records.findings,
    ...judgeInvented(observed, copies),
    ...observed.endpoints.flatMap((endpoint) => judgeEndpoint(endpoint, observed)),
    ...judgeCounting(observed, records.lostToDamage),
    ...judgeLeftovers(observed),
    ...observed.troubles.map((text) => ({ law: 'processes', text })),
  ]
  const rejected = observed.endpoints.flatMap(({ delivered }) => delivered.flatMap(({ views }) => views[0]?.rejected.length ?? 0))
  return {
    findings,
    committedRecords: [...copies.values()].reduce((sum, { places }) => sum + places.length, 0),
    deadLetters: rejected.reduce((sum, rows) => sum + rows, 0),
    lostToDamage: records.lostToDamage,
    listedRecords: records.listed,
  }
}

type Copies = { readonly endpointIds: Set<string>; readonly places: string[] }

function countCopies(endpoints: readonly ObservedEndpoint[]): ReadonlyMap<RecordName, Copies> {
  const copies = new Map<RecordName, Copies>()
  for (const { id, delivered } of endpoints) {
    for (const { marker, records } of delivered) {
      for (const name of records) {
        const known = copies.get(name) ?? { endpointIds: new Set(), places: [] }
        known.endpointIds.add(id)
        known.places.push(`${marker.log}/${marker.seq}`)
        copies.set(name, known)
      }
    }
  }
  return copies
}

function judgeRecords({ sent, damaged, leftovers }: Observed, copies: ReadonlyMap<RecordName, Copies>) {
  const problems = { lost: new Set<number>(), doubled: new Set<number>(), torn: new Set<number>() }
  const places = new Set<string>()
  const lostToDamage: RecordName[] = []
  const recordsIn = (some: readonly Leftover[]) => new Set(some.flatMap(({ records }) => [...records]))
  const listedRecords = recordsIn(leftovers.filter(({ reason }) => reason !== undefined))
  const strandedRecords = recordsIn(leftovers.filter(({ reason }) => reason === undefined))
  let listed = 0
  for (const { id, size, attempts } of sent) {
    const least = attempts.filter((outcome) => outcome === 'acknowledged').length
    const most = attempts.filter((outcome) => outcome !== 'refused').length
    const found = new Set<number>()
    for (let index = 0; index < size; index += 1) {
      const name = `${id}/${index}`
      const known = copies.get(name)
      const number = known?.places.length ?? 0
      found.add(number)
      if (number > most) {
        problems.doubled.add(id)
        for (const place of known?.places ?? []) places.add(place)
      }
      if (number >= least) continue
      if (damaged.has(id)) lostToDamage.push(name)
      else if (listedRecords.has(name)) listed += 1
      // Stranded records have a finding of their own.
      else if (!strandedRecords.has(name)) problems.lost.add(id)
    }
    if (found.size > 1 && !damaged.has(id) && !problems.lost.has(id) && !problems.doubled.has(id) && leftovers.length === 0) {
      problems.torn.add(id)
    }
  }
  const { lost, doubled, torn } = problems
  const findings: Finding[] = []
  const all = (ids: ReadonlySet<number>) => `${ids.size} requests: ${listSome(ids)}`
  if (lost.size > 0) findings.push({ law: 'lost', text: `acknowledged, but neither committed nor on the node: ${all(lost)}` })
  if (doubled.size > 0) {
    findings.push({ law: 'doubled', text: `committed more often than sent: ${all(doubled)}, in segments ${listSome(places)}` })
  }
  if (torn.size > 0) findings.push({ law: 'torn', text: `committed in part: ${all(torn)}` })
  return { findings, lostToDamage, listed }
}

/** Records that nobody sent, or that are in the bucket of another endpoint. */
function judgeInvented({ sent }: Observed, copies: ReadonlyMap<RecordName, Copies>): readonly Finding[] {
  const invented: RecordName[] = []
  for (const [name, { endpointIds }] of copies) {
    const [id, index] = name.split('/').map(Number)
    const request = sent[id ?? -1]
    if (request === undefined || (index ?? 0) >= request.size) invented.push(name)
    else if (endpointIds.size !== 1 || !endpointIds.has(request.endpointId)) invented.push(name)
  }
  return invented.length === 0
    ? []
    : [{ law: 'invented', text: `committed, but never sent to this endpoint: ${listSome(invented)}` }]
}

/** Records lost in a sealed segment are counted in its commit or listed. In an open one, the loss may look like a torn write. */
function judgeCounting({ sent, damaged, endpoints, leftovers }: Observed, lost: readonly RecordName[]): readonly Finding[] {
  const requests = new Set(lost.map((name) => Number(name.split('/')[0])))
  const wrong = [...requests].filter((id) => {
    const endpoint = endpoints.find((each) => each.id === sent[id]?.endpointId)
    const isCounted = endpoint?.delivered.some(({ marker }) => ((marker as Counted).records_damaged ?? 0) > 0) === true
    const isListed = leftovers.some(({ log, reason }) => log === endpoint?.id && reason !== undefined)
    return damaged.get(id)?.isSealed === true && !isCounted && !isListed
  })
  return wrong.length === 0
    ? []
    : [{ law: 'uncounted', text: `lost to damage, but neither counted nor listed: requests ${listSome(wrong)}` }]
}

type Counted = { readonly records_damaged?: number }

function judgeEndpoint(endpoint: ObservedEndpoint, { leftovers }: Observed): readonly Finding[] {
  const { id, delivered, status, statusReasons, isDeleted, hasDirectory } = endpoint
  const texts: string[] = []
  // A segment that was set aside holds a drain and degrades an endpoint, which says so.
  const isHeld = leftovers.some(({ log, reason }) => log === id && reason !== undefined) && statusReasons.length > 0
  const isFine = isDeleted ? status === undefined : status === 'active'
  if (!isFine && !(isHeld && status === (isDeleted ? 'draining' : 'degraded'))) {
    texts.push(
      `is ${status ?? 'gone'} ${isDeleted ? 'after it was deleted' : 'after everything healed'}: ${statusReasons.join('; ')}`,
    )
  }
  if (isDeleted && status === undefined && hasDirectory) texts.push('is gone from the API, but not from the node')
  const ids = delivered.map(({ marker }) => marker.id)
  if (new Set(ids).size < ids.length) texts.push('has several markers for one segment')
  texts.push(...delivered.flatMap(judgeMarker), ...compareCommits(endpoint), ...compareCounters(endpoint))
  return texts.map((text) => ({ law: 'endpoint', text: `endpoint ${id} ${text}` }))
}

function judgeMarker({ marker, records, views, problems }: Delivered): readonly string[] {
  const texts = problems.map((problem) => `lists a file that does not fit: ${problem}`)
  const name = `${marker.log}/${marker.seq}`
  if (marker.records !== records.length) {
    texts.push(`has ${records.length} records of segment ${name}, its marker says ${marker.records}`)
  }
  const expected = records.toSorted().join()
  for (const view of views) {
    if ([...view.accepted, ...view.rejected].toSorted().join() !== expected) {
      texts.push(`has other records in ${view.name} than in raw Parquet of segment ${name}`)
    }
    const outcome = marker.views.find(({ view_name, view_version }) => `${view_name} v${view_version}` === view.name)
    if (outcome?.accepted !== view.accepted.length || outcome.dlq !== view.rejected.length) {
      texts.push(`has other counters in its marker than rows in ${view.name} of segment ${name}`)
    }
  }
  return texts
}

function compareCommits({ delivered, commits }: ObservedEndpoint): readonly string[] {
  if (commits === undefined) return []
  const markers = new Map(delivered.map(({ marker }) => [marker.id, marker]))
  const known = new Map(commits.map((commit) => [commit.id, commit]))
  const texts: string[] = []
  if (known.size < commits.length) texts.push('lists a commit twice')
  const [onlyMarker, onlyCommit] = [
    [...markers.keys()].filter((id) => !known.has(id)),
    [...known.keys()].filter((id) => !markers.has(id)),
  ]
  if (onlyMarker.length > 0) texts.push(`has markers without a commit in the API: ${listSome(onlyMarker, 3)}`)
  if (onlyCommit.length > 0) texts.push(`has commits in the API without a marker: ${listSome(onlyCommit, 3)}`)
  for (const [id, marker] of markers) {
    const commit = known.get(id)
    if (commit === undefined) continue
    const inApi = filesOf(Object.entries(commit.artifacts).filter(([kind]) => kind !== 'manifest'))
    const agrees = commit.seq === marker.seq && commit.records === marker.records
    if (filesOf(Object.entries(marker.artifacts)) !== inApi || !agrees) {
      texts.push(`has a commit in the API that differs from its marker: ${id}`)
    }
  }
  return texts
}

function filesOf(entries: readonly (readonly [string, { readonly key: string; readonly bytes: number }])[]): string {
  return entries
    .map(([kind, { key, bytes }]) => `${kind} ${key} ${bytes}`)
    .toSorted()
    .join('\n')
}

function compareCounters({ delivered, counters }: ObservedEndpoint): readonly string[] {
  if (counters === undefined) return []
  const expected = new Map<string, ViewCount>()
  for (const { marker } of delivered) {
    for (const { view_id, processed, accepted, dlq } of marker.views) {
      const sum = expected.get(view_id) ?? { processed: 0, accepted: 0, dlq: 0 }
      expected.set(view_id, { processed: sum.processed + processed, accepted: sum.accepted + accepted, dlq: sum.dlq + dlq })
    }
  }
  return [...counters].flatMap(([view, { processed, accepted, dlq }]) => {
    const sum = expected.get(view) ?? { processed: 0, accepted: 0, dlq: 0 }
    const agrees = processed === sum.processed && accepted === sum.accepted && dlq === sum.dlq
    return agrees ? [] : [`has counters for view ${view} that are not the sum of its markers`]
  })
}

function judgeLeftovers({ leftovers }: Observed): readonly Finding[] {
  const stranded = leftovers.filter(({ reason }) => reason === undefined)
  return [...Map.groupBy(stranded, ({ log }) => log).values()].map((files) => {
    const records = files.reduce((sum, file) => sum + file.records.size, 0)
    const names = listSome(
      files.map(({ path }) => path),
      2,
    )
    return { law: 'stranded', text: `left on the node without a reason: ${files.length} files with ${records} records: ${names}` }
  })
}
