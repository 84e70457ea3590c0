/** Reads what delivery left in a bucket, from a directory that holds its objects. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Marker = {
  readonly id: string
  readonly seq: number
  readonly log: string
  readonly sealed_at: string
  readonly records: number
  readonly artifacts: Readonly<
    Record<string, { readonly key: string; readonly bytes: number; readonly rows: number; readonly sha256: string }>
  >
  readonly views: readonly {
    readonly view_id: string
    readonly view_name: string
    readonly view_version: number
    readonly processed: number
    readonly accepted: number
    readonly dropped: number
    readonly dlq: number
  }[]
}

/** The markers under `<bucket>/<prefix>/<endpoint>`, by sequence number. */
export function readMarkers(bucket: string, prefix: string, endpointId: string): readonly Marker[] {
  const folder = join(bucket, prefix, endpointId, 'commits')
  if (!existsSync(folder)) return []
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
  return names.map((name): Marker => JSON.parse(readFileSync(join(folder, name), 'utf8'))).toSorted((a, b) => a.seq - b.seq)
}

/** Paths of the files of one kind that markers list. */
export function artifactPaths(bucket: string, markers: readonly Marker[], kind: string): readonly string[] {
  return markers.flatMap(({ artifacts }) => {
    const artifact = artifacts[kind]
    return artifact === undefined ? [] : [join(bucket, artifact.key)]
  })
}
