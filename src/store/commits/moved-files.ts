/**
 * Where the rows of a delivered file are, once a compaction removes it.
 *
 * Law: whatever reads a file of a commit asks here first. Until its removal begins the file itself is read, because it is smaller.
 */
import type { ArtifactFile } from '#model/commit.ts'
import { inChunks } from '../chunks.ts'
import { fromJson } from '../columns.ts'
import type { Db } from '../store.ts'

/** Rows of a file, counted from 0. */
export type RowRange = { readonly first_row: number; readonly rows: number }

/** The merged file, and the rows that were the file of the commit. */
export type MovedFile = Pick<ArtifactFile, 'key' | 'bytes' | 'sha256'> & RowRange

/** Looks up a file of a commit by its kind. */
export type MovedFiles = (commit_id: string, kind: string) => MovedFile | undefined

export async function findMovedFiles(db: Db, commitIds: readonly string[]): Promise<MovedFiles> {
  const moved = new Map<string, MovedFile>()
  for (const ids of inChunks(commitIds)) {
    const rows = await db
      .selectFrom('compacted_artifacts as source')
      .innerJoin('compactions', 'compactions.id', 'source.compaction_id')
      .select(['source.commit_id', 'source.kind', 'source.first_row', 'source.rows', 'compactions.file'])
      .where('source.commit_id', 'in', ids)
      .where('compactions.removing_since', 'is not', null)
      .where('compactions.file', 'is not', null)
      .$narrowType<{ file: string }>()
      .execute()
    for (const { commit_id, kind, first_row, rows: count, file } of rows) {
      const { key, bytes, sha256 } = fromJson<ArtifactFile>(file)
      moved.set(`${commit_id} ${kind}`, { key, bytes, sha256, first_row, rows: count })
    }
  }
  return (commit_id, kind) => moved.get(`${commit_id} ${kind}`)
}
