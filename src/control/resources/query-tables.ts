/**
 * Resolves the tables of a statement, and chooses the files of them that a query reads.
 *
 * Law: only views and endpoints of the account are tables. Of their files the newest are read, within one bound for all tables together.
 */
import { AppError } from '#errors.ts'
import type { Column } from '#model/definition.ts'
import { queryLimits } from '#model/limits.ts'
import type { QueriedTable } from '#model/query.ts'
import { canMeet } from '#query/conditions.ts'
import type { TableName } from '#query/query-protocol.ts'
import { describeUnknownTable, findTable, printName, rawColumns } from '#query/tables.ts'
import {
  type DeliveredFile,
  deliveredFiles,
  type FilesWanted,
  listEndpointsOfView,
  type TimeRange,
} from '#store/commits/delivered-files.ts'
import { findMissingSinceOf } from '#store/commits/missing-commits.ts'
import type { RowRange } from '#store/commits/moved-files.ts'
import { findQueriedColumns, listQueriedEndpoints, listQueriedVersions } from '#store/commits/query-tables.ts'
import type { Db } from '#store/store.ts'

/** Endpoints whose files are read for one view, and commits of each of them that are searched. */
const ENDPOINTS_MAX = 100
const COMMITS_MAX = 2_000

export type TableColumn = Pick<Column, 'name' | 'type' | 'parquet'>

/** A table, and the endpoints that may have files of it. */
export type ResolvedTable = {
  readonly name: TableName
  readonly wanted: FilesWanted
  readonly endpoints: readonly string[]
  /** Whether `endpoints` leaves some out. */
  readonly leavesOut: boolean
  readonly columns: readonly TableColumn[]
  readonly identity: Pick<QueriedTable, 'name' | 'kind' | 'view_id' | 'view_version' | 'endpoint_id'>
}

/** A file of which only these rows are read, or all. */
export type ChosenFile = Omit<DeliveredFile, 'part'> & { readonly ranges: RowRange[] | null }

export type ChosenFiles = {
  readonly files: readonly ChosenFile[]
  readonly complete: boolean
  readonly may_lack_commits_since: string | null
}

export type EndpointLimits = {
  /** The caller asks for files of this endpoint. */
  readonly only: string | undefined
  /** The endpoints whose files the caller may read; null for all of the account. */
  readonly reach: readonly string[] | null
}

/** Resolves the tables of a statement. Throws validation_error for a table that the account does not have, or that is beyond the caller's reach. */
export async function resolveTables(
  db: Db,
  account_id: string,
  names: readonly TableName[],
  limits: EndpointLimits,
): Promise<readonly ResolvedTable[]> {
  const tables: ResolvedTable[] = []
  for (const name of names) {
    const table = await findTableOf(db, account_id, name, limits)
    const { only, reach } = limits
    const isReachable = table !== undefined && (reach === null || table.endpoints.some((id) => reach.includes(id)))
    if (!isReachable && name.isOptional) continue
    if (!isReachable) throw unknownTable(name)
    tables.push(only === undefined ? table : { ...table, endpoints: table.endpoints.filter((id) => id === only) })
  }
  return tables
}

async function findTableOf(
  db: Db,
  account_id: string,
  name: TableName,
  { only, reach }: EndpointLimits,
): Promise<ResolvedTable | undefined> {
  const found = await findTable(name, {
    listEndpoints: (nameOrId) => listQueriedEndpoints(db, account_id, nameOrId),
    listVersions: (view) => listQueriedVersions(db, account_id, view),
  })
  if (found === undefined) return undefined
  if (found.kind === 'raw') {
    const { kind, endpoint_id } = found
    const identity = { name: printName(name), kind, view_id: null, view_version: null, endpoint_id }
    return { name, wanted: kind, endpoints: [endpoint_id], leavesOut: false, columns: rawColumns, identity }
  }
  const { kind, view } = found
  const reached = reach ?? (only === undefined ? null : [only])
  const endpoints = await listEndpointsOfView(db, account_id, view.id, reached, ENDPOINTS_MAX + 1)
  const columns = await findQueriedColumns(db, view.id)
  if (columns === undefined) return undefined
  return {
    name,
    wanted: { view_id: view.id },
    endpoints: endpoints.slice(0, ENDPOINTS_MAX),
    leavesOut: endpoints.length > ENDPOINTS_MAX,
    columns: columns.map(({ name: column, type, parquet }) => ({ name: column, type, parquet })),
    identity: { name: printName(name), kind, view_id: view.id, view_version: view.version, endpoint_id: null },
  }
}

/** Chooses the newest files of each table. Tables share the bounds equally. */
export async function chooseFiles(
  db: Db,
  account_id: string,
  tables: readonly ResolvedTable[],
  { only, ...range }: TimeRange & Pick<EndpointLimits, 'only'>,
): Promise<readonly ChosenFiles[]> {
  const bytesMax = Math.floor(queryLimits.bytesMax / Math.max(1, tables.length))
  const filesMax = Math.floor(queryLimits.filesMax / Math.max(1, tables.length))
  return Promise.all(
    tables.map(async (table) => {
      const chosen = await chooseNewest(db, table, range, { bytesMax, filesMax })
      const may_lack_commits_since = await findMissingSinceOf(db, account_id, table.identity.endpoint_id ?? only)
      return { ...chosen, complete: chosen.complete && may_lack_commits_since === null, may_lack_commits_since }
    }),
  )
}

type Source = AsyncGenerator<DeliveredFile, boolean, undefined>

async function chooseNewest(
  db: Db,
  { name, columns, endpoints, wanted, leavesOut }: ResolvedTable,
  range: TimeRange,
  { bytesMax, filesMax }: { readonly bytesMax: number; readonly filesMax: number },
): Promise<Omit<ChosenFiles, 'may_lack_commits_since'>> {
  const files: ChosenFile[] = []
  const merged = new Map<string, RowRange[]>()
  let bytes = 0
  const sources = endpoints.map((id) => deliveredFiles(db, id, wanted, range, COMMITS_MAX))
  const found = newestFirst(sources)
  for (;;) {
    const next = await found.next()
    if (next.done === true) return { files, complete: next.value && !leavesOut }
    const { part, ...file } = next.value
    if (!canMeet(name.conditions, file.partition, columns)) continue
    const ranges = part === undefined ? undefined : merged.get(file.key)
    if (part !== undefined && ranges !== undefined) {
      ranges.push(part)
      continue
    }
    bytes += file.bytes
    // No older file is read instead of one that does not fit: the rows are then of one range of time.
    if (bytes > bytesMax || files.length === filesMax) return { files, complete: false }
    const own = part === undefined ? null : [part]
    if (own !== null) merged.set(file.key, own)
    files.push({ ...file, ranges: own })
  }
}

/** Merges what several endpoints have, until one of them has more commits than are searched: the rows are then of one range of time. Returns whether all were. */
async function* newestFirst(sources: readonly Source[]): Source {
  const heads: { file: DeliveredFile; readonly source: Source }[] = []
  let all = true
  for (const source of sources) {
    const first = await source.next()
    if (first.done === true) all &&= first.value
    else heads.push({ file: first.value, source })
  }
  for (;;) {
    const [head, ...others] = heads
    if (head === undefined) return all
    const newest = others.reduce((best, each) => (each.file.uploaded_at > best.file.uploaded_at ? each : best), head)
    yield newest.file
    const next = await newest.source.next()
    if (next.done !== true) newest.file = next.value
    else if (next.value) heads.splice(heads.indexOf(newest), 1)
    else return false
  }
}

function unknownTable(name: TableName): AppError {
  const message = describeUnknownTable(name)
  return new AppError('validation_error', message, { errors: [{ path: 'sql', message }] })
}
