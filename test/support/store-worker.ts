/** Runs work on a store in separate processes: only separate processes contend for one SQLite file as they do in production. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { SegmentCommit } from '#model/commit.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { migrate } from '#store/migrations/migrate.ts'
import { openStore, transact } from '#store/store.ts'

type Task = 'migrate' | 'record'

/** Starts `count` processes at once and returns the number that each of them printed. */
export async function runStoreWorkers(
  count: number,
  url: string,
  task: Task,
  commits: (worker: number) => readonly SegmentCommit[] = () => [],
): Promise<number[]> {
  const runs = Array.from({ length: count }, async (_, worker) => {
    const argv = [import.meta.filename, url, task, JSON.stringify(commits(worker))]
    const { stdout } = await promisify(execFile)(process.execPath, argv)
    return Number(stdout)
  })
  return Promise.all(runs)
}

async function work(url: string, task: Task, commits: readonly SegmentCommit[]): Promise<number> {
  const store = await openStore(url)
  try {
    if (task === 'migrate') return await migrate(store)
    let recorded = 0
    for (const commit of commits) {
      const outcome = await transact(store, (db) => recordCommit(db, commit, Date.parse(commit.uploaded_at)))
      if (outcome === 'new') recorded += 1
    }
    return recorded
  } finally {
    await store.close()
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , url = '', task = '', commits = '[]'] = process.argv
  console.log(await work(url, task as Task, JSON.parse(commits) as SegmentCommit[]))
}
