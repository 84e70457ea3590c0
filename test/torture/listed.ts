/** Reads the output of `inlet segments list --json`. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Rig } from './rig.ts'

const program = join(import.meta.dirname, '../../src/main.ts')
const run = promisify(execFile)

/** States in which a segment may stay: a person has to decide about it. */
const settled = ['parked', 'quarantined']

type Listed = {
  readonly path: string
  readonly state: string
  readonly owner: string
  readonly log: string
  readonly reason: string
}

/** Returns why segments stay on the node, by path. Those that are merely on their way have no reason to. */
export async function listReasons({ environment }: Pick<Rig, 'environment'>): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run(process.execPath, [program, 'segments', 'list', '--json'], { env: environment }).catch(
    // With unreadable files it exits with 1 and lists the rest.
    (error: { readonly stdout?: string; readonly message: string }) => {
      if (error.stdout === undefined || error.stdout === '') throw new Error(error.message)
      return { stdout: error.stdout }
    },
  )
  const { segments } = JSON.parse(stdout) as { readonly segments: readonly Listed[] }
  const staying = segments.filter(({ state, owner, log }) => settled.includes(state) || owner !== log)
  return new Map(staying.filter(({ reason }) => reason !== '').map(({ path, state, reason }) => [path, `${state}: ${reason}`]))
}
