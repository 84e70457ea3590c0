/**
 * The kinds of files created from a segment, and their object keys.
 *
 * Owns: the text form of a kind (the keys of `artifacts` in markers and in the API) and the object keys. No other file parses either.
 * Law: an object key is a pure function of the destination's prefix, the segment and the kind, so a repeated upload overwrites itself.
 * Different kinds of a segment have different keys. Whoever delivers an adopted log has keys of its own, but for the marker: only one of
 * two machines with the same log can write that.
 */
import { isoTimestamp } from '#lib/clock.ts'
import { commitId } from './commit.ts'

/** A view version, by name. */
export type ViewVersion = { readonly name: string; readonly version: number }

/** `redriveFrom` is set on the files of a re-drive: the version whose DLQ rows it read. */
type ViewOutput = ViewVersion & { readonly redriveFrom?: number }

/** The value that all rows of a file have in a column of `partition_by`; null for rows without one. */
export type PartitionValue = { readonly column: string; readonly value: string | null }

export type ArtifactKind =
  /** The segment as it was written, compressed. */
  | { readonly type: 'segment' }
  /** The records as they were received. */
  | { readonly type: 'parquet' }
  /** The rows that a view accepted, or those of one partition. */
  | ({ readonly type: 'view'; readonly partition?: readonly PartitionValue[] } & ViewOutput)
  /** The rows that a view rejected. */
  | ({ readonly type: 'dlq' } & ViewOutput)
  /** Written last: it lists the other files of the segment. */
  | { readonly type: 'marker' }
  /** The marker of an addition by a backfill or a re-drive. */
  | ({ readonly type: 'addition-marker' } & ViewVersion)

/** The parts of a segment's object keys. */
export type SegmentName = {
  readonly endpointId: string
  readonly nodeId: string
  /** Incarnation of the log. A commit, a marker and the metadata of an object call it `log`. */
  readonly incarnation: string
  readonly seq: number
  /** From the segment's footer. */
  readonly sealedAtMicros: number
  /** Id of the adoption that delivers it: see `SegmentCommit`. */
  readonly adoption?: string | undefined
}

const namePattern = '[a-z][a-z0-9_]*'
const versionPattern = '[1-9][0-9]{0,14}'
const partitionPattern = '(?:/[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9_.~%-]*)*'
const viewKindPattern = new RegExp(
  `^(views|dlq|manifest)/(${namePattern})/v(${versionPattern})(?:/redrive-v(${versionPattern}))?(${partitionPattern})$`,
)

type KindWithoutView = Exclude<ArtifactKind, ViewVersion>

const textOf: Readonly<Record<KindWithoutView['type'], string>> = { segment: 'segment', parquet: 'parquet', marker: 'manifest' }
const kindsByText: ReadonlyMap<string, KindWithoutView> = new Map(
  (Object.keys(textOf) as KindWithoutView['type'][]).map((type) => [textOf[type], { type }]),
)

/** Parses the text of a kind. Returns undefined if it is not one. */
export function parseArtifactKind(text: string): ArtifactKind | undefined {
  const kind = kindsByText.get(text)
  if (kind !== undefined) return kind
  const [, folder, name, version, redriveFrom, folders = ''] = viewKindPattern.exec(text) ?? []
  if (name === undefined) return undefined
  const view = { name, version: Number(version), ...(redriveFrom !== undefined && { redriveFrom: Number(redriveFrom) }) }
  if (folder === 'views') {
    const partition = parsePartition(folders)
    return partition && { type: 'view', ...view, ...(partition.length > 0 && { partition }) }
  }
  if (folders !== '') return undefined
  if (folder === 'dlq') return { type: 'dlq', ...view }
  return redriveFrom === undefined ? { type: 'addition-marker', ...view } : undefined
}

/** Returns the values that all rows of a file of this kind have. */
export function partitionOf(text: string): readonly PartitionValue[] {
  const kind = parseArtifactKind(text)
  return kind?.type === 'view' ? (kind.partition ?? []) : []
}

/** Returns the text of a kind: the inverse of `parseArtifactKind`. */
export function printArtifactKind(kind: ArtifactKind): string {
  switch (kind.type) {
    case 'view':
    case 'dlq': {
      const part = kind.redriveFrom === undefined ? '' : `/redrive-v${kind.redriveFrom}`
      return `${viewFolder(kind)}${part}${foldersOf(kind, encodeInKind)}`
    }
    case 'addition-marker':
      return `manifest/${kind.name}/v${kind.version}`
    default:
      return textOf[kind.type]
  }
}

/** Whether the text names the kind of a marker. */
export function isMarkerKind(text: string): boolean {
  const kind = parseArtifactKind(text)
  return kind !== undefined && isMarker(kind)
}

export function isMarker({ type }: ArtifactKind): boolean {
  return type === 'marker' || type === 'addition-marker'
}

/** Returns the object key. `prefix` is the destination's, normalized: empty, or without a slash at either end. */
export function objectKey(prefix: string, segment: SegmentName, kind: ArtifactKind): string {
  const { folder, suffix } = layoutOf(kind)
  const date = isoTimestamp(segment.sealedAtMicros / 1000).slice(0, 10)
  const id = commitId(segment.nodeId, segment.incarnation, segment.seq)
  const name = segment.adoption === undefined || isMarker(kind) ? id : `${id}-${segment.adoption}`
  return `${endpointFolder(prefix, segment.endpointId)}${folder}${dayAndFolders(date, kind)}/${name}${suffix}`
}

/** Returns the folder that contains all markers of an endpoint. */
export function markerFolder(prefix: string, endpointId: string): string {
  return `${endpointFolder(prefix, endpointId)}${markers}/`
}

/** Returns the prefix that an object was stored under, which may differ from the current prefix of its destination. */
export function prefixOf(key: string, endpointId: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf(`/${endpointId}/`)))
}

const markerName = new RegExp(`/([0-9a-f-]{36}-[A-Za-z0-9_-]+-[0-9]{12,})(?:\\.(${namePattern})-v(${versionPattern}))?\\.json$`)

/** Returns the commit and the kind of the marker with this key, or undefined if no marker has such a key. */
export function parseMarkerKey(key: string): { readonly commitId: string; readonly kind: ArtifactKind } | undefined {
  const [, commitId, name, version] = markerName.exec(key) ?? []
  if (commitId === undefined) return undefined
  const isAddition = name !== undefined && version !== undefined
  return { commitId, kind: isAddition ? { type: 'addition-marker', name, version: Number(version) } : { type: 'marker' } }
}

export type MarkerName = {
  readonly commitId: string
  readonly isAddition: boolean
  readonly nodeId: string
  readonly seq: number
  /** When the UTC day of the seal began (epoch ms). */
  readonly dayStartMs: number
}

/** Returns the parts of the key of a marker, or undefined if no marker has such a key. */
export function parseMarkerName(key: string): MarkerName | undefined {
  const marker = parseMarkerKey(key)
  const [, nodeId, , seq] = commitIdPattern.exec(marker?.commitId ?? '') ?? []
  if (marker === undefined || nodeId === undefined || seq === undefined) return undefined
  const day = /\/dt=([0-9]{4}-[0-9]{2}-[0-9]{2})\/[^/]*$/.exec(key)?.[1] ?? ''
  const dayStartMs = Date.parse(day)
  if (Number.isNaN(dayStartMs)) return undefined
  return { commitId: marker.commitId, isAddition: marker.kind.type === 'addition-marker', nodeId, seq: Number(seq), dayStartMs }
}

/** Returns the id of an addition's marker: the commit id of the segment, and the view version that was added. */
export function additionId(commitId: string, { name, version }: ViewVersion): string {
  return `${commitId}.${name}-v${version}`
}

const commitIdPattern = /^([0-9a-f-]{36})-([A-Za-z0-9_-]+)-([0-9]{12,})$/

/** Returns the key of a file of a segment, given the id of the marker that lists it, and the UTC date of its seal. */
export function keyOfListed(folder: EndpointFolder, markerId: string, kind: ArtifactKind): string {
  const [commit = ''] = markerId.split('.')
  const [, nodeId, incarnation, seq] = commitIdPattern.exec(commit) ?? []
  if (nodeId === undefined || incarnation === undefined) throw new Error(`${JSON.stringify(markerId)} is not the id of a marker`)
  const { prefix, endpointId, date } = folder
  return objectKey(prefix, { endpointId, nodeId, incarnation, seq: Number(seq), sealedAtMicros: Date.parse(date) * 1000 }, kind)
}

/** Where the files of an endpoint are that were sealed on one day, in UTC. */
export type EndpointFolder = { readonly prefix: string; readonly endpointId: string; readonly date: string }

/** Whether files of the kind can be merged: Parquet. */
export function isCompactable({ type }: ArtifactKind): boolean {
  return type === 'parquet' || type === 'view'
}

/** The new file of a compaction: its content is in its name, so whoever repeats the compaction changes no file. */
export type CompactedName = { readonly id: string; readonly sha256: string }

/**
 * Returns the key of the file that a compaction makes. Its folder is not that of its sources: whoever reads a folder without following markers
 * finds each row there once.
 */
export function compactedKey(place: EndpointFolder, kind: ArtifactKind, name: CompactedName): string {
  return `${endpointFolder(place.prefix, place.endpointId)}compacted/${pathInFolder(place, kind, name)}`
}

/** Whether a node makes this file: releases before the folder `compacted` put it beside its sources. */
export function isCompactedKey(key: string, place: EndpointFolder, kind: ArtifactKind, name: CompactedName): boolean {
  const beside = `${endpointFolder(place.prefix, place.endpointId)}${pathInFolder(place, kind, name)}`
  return key === compactedKey(place, kind, name) || key === beside
}

function pathInFolder({ date }: EndpointFolder, kind: ArtifactKind, { id, sha256 }: CompactedName): string {
  return `${layoutOf(kind).folder}${dayAndFolders(date, kind)}/${id}-${sha256.slice(0, 16)}.parquet`
}

const compactionName = /\/dt=([0-9]{4}-[0-9]{2}-[0-9]{2})\/(compact-[0-9a-f-]{36})\.json$/

/** Returns the key of the marker of a compaction, or without an id what the keys of all those of the day begin with. */
export function compactionMarkerKey({ prefix, endpointId, date }: EndpointFolder, id?: string): string {
  return `${markerFolder(prefix, endpointId)}dt=${date}/${id === undefined ? 'compact-' : `${id}.json`}`
}

/** Returns the compaction whose marker has this key, or undefined if no such marker has it. */
export function parseCompactionMarkerKey(key: string): { readonly id: string; readonly date: string } | undefined {
  const [, date, id] = compactionName.exec(key) ?? []
  return date === undefined || id === undefined ? undefined : { id, date }
}

export function contentTypeOf({ type }: ArtifactKind): string {
  switch (type) {
    case 'segment':
      return 'application/zstd'
    case 'parquet':
    case 'view':
      return 'application/vnd.apache.parquet'
    case 'dlq':
      return 'application/gzip'
    case 'marker':
    case 'addition-marker':
      return 'application/json'
  }
}

const markers = 'commits'

function endpointFolder(prefix: string, endpointId: string): string {
  return prefix === '' ? `${endpointId}/` : `${prefix}/${endpointId}/`
}

/** The name of the folders of days. */
export const dayFolder = 'dt'

/** The name that readers of Hive's folders take for NULL. */
export const nullFolder = '__HIVE_DEFAULT_PARTITION__'

/** Returns a folder for each column of the partition, as Hive names them: `/country=DE/day=2026-11-20`. */
function foldersOf(kind: ArtifactKind, encode: (text: string) => string): string {
  if (kind.type !== 'view') return ''
  const folders = kind.partition?.map(({ column, value }) => `/${column}=${value === null ? nullFolder : encode(value)}`)
  return folders?.join('') ?? ''
}

/** The day of the seal, unless a column of the view has its place. */
function dayAndFolders(date: string, kind: ArtifactKind): string {
  const folders = foldersOf(kind, escapeForHive)
  return folders.includes(`/${dayFolder}=`) ? folders : `/${dayFolder}=${date}${folders}`
}

/** In ASCII, because the metadata of an object has the kind too. */
function encodeInKind(value: string): string {
  return encodeURIComponent(value).replaceAll(/[!'()*]/g, percentOf)
}

function percentOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/** Other than ASCII stays as it is, because Spark and Trino decode each escaped byte as a character. */
function escapeForHive(value: string): string {
  return value.replaceAll(/[^A-Za-z0-9_.~\u0080-\uffff-]/g, percentOf)
}

/** Returns undefined if the folders are not written as `printArtifactKind` writes them. */
function parsePartition(folders: string): readonly PartitionValue[] | undefined {
  const partition: PartitionValue[] = []
  for (const folder of folders.split('/').slice(1)) {
    const [column = '', encoded = ''] = folder.split('=')
    const value = encoded === nullFolder ? null : decode(encoded)
    if (value === undefined) return undefined
    partition.push({ column, value })
  }
  return partition
}

function decode(encoded: string): string | undefined {
  try {
    const value = decodeURIComponent(encoded)
    return encodeInKind(value) === encoded ? value : undefined
  } catch {
    return undefined
  }
}

/** Files of a re-drive are in the same folder as those of live delivery. */
function viewFolder({ type, name, version }: Extract<ArtifactKind, ViewOutput>): string {
  return `${type === 'view' ? 'views' : 'dlq'}/${name}/v${version}`
}

/** Returns the folder, and the suffix after the commit id. */
function layoutOf(kind: ArtifactKind): { readonly folder: string; readonly suffix: string } {
  switch (kind.type) {
    case 'segment':
      return { folder: 'segments', suffix: '.wal.zst' }
    case 'parquet':
      return { folder: 'parquet', suffix: '.parquet' }
    case 'view':
    case 'dlq': {
      const extension = kind.type === 'view' ? 'parquet' : 'ndjson.gz'
      const part = kind.redriveFrom === undefined ? '' : `.redrive-v${kind.redriveFrom}`
      return { folder: viewFolder(kind), suffix: `${part}.${extension}` }
    }
    case 'marker':
      return { folder: markers, suffix: '.json' }
    case 'addition-marker':
      return { folder: markers, suffix: `.${kind.name}-v${kind.version}.json` }
  }
}
