const ofVersion = /^(views|dlq|manifest)\/([^/]+)\/(v\d+)(?:\/redrive-(v\d+))?$/
const prefixes: Readonly<Record<string, string>> = { views: '', dlq: 'Dead letters of ', manifest: 'Marker of ' }
const names: Readonly<Record<string, string>> = { parquet: 'Raw Parquet', segment: 'Segment', manifest: 'Marker' }

/** Says what a file of a commit is. A newer release may have kinds that this page does not know. */
export function fileName(kind: string): string {
  const [, folder = '', view, version, from] = ofVersion.exec(kind) ?? []
  if (view === undefined) return names[kind] ?? kind
  return `${prefixes[folder] ?? ''}${view} ${version}${from === undefined ? '' : `, re-driven from ${from}`}`
}
