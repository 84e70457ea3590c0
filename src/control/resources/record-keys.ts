import { isMarkerKind } from '#model/artifact.ts'
import type { Commit } from '#model/commit.ts'

/** Returns the keys of the objects that have the records of a commit, merged ones included. */
export function listRecordKeys({ artifacts }: Pick<Commit, 'artifacts'>): string[] {
  const files = Object.entries(artifacts).filter(([kind]) => !isMarkerKind(kind))
  return [...new Set(files.map(([, { key, moved_to }]) => moved_to?.key ?? key))]
}
