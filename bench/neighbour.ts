/** A process beside the victim: an attacker, or one that only takes as much of the processors. Both end when the benchmark does. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { ApiClient } from '../test/support/api-client.ts'
import { fairnessAttacks } from './fairness-attacks.ts'
import type { Tenant } from './tenants.ts'

type Task =
  | { readonly attack: string; readonly address: ConstructorParameters<typeof ApiClient>[0]; readonly endpointId: string }
  | { readonly busy: number }

const sliceMs = 20

export class Neighbour implements AsyncDisposable {
  readonly #child: ChildProcess

  private constructor(task: Task) {
    this.#child = fork(import.meta.filename, [JSON.stringify(task)])
  }

  static attacker(attack: string, { client, endpointId }: Tenant): Neighbour {
    const { apiUrl, ingestUrl, apiKey } = client
    return new Neighbour({ attack, endpointId, address: { apiUrl, ingestUrl, apiKey } })
  }

  /** `share` of one core, from 0 to 2. */
  static harmless(share: number): Neighbour {
    return new Neighbour({ busy: share })
  }

  /** Returns the processor time that it has used, in seconds. */
  async coreSeconds(): Promise<number> {
    this.#child.send('usage')
    const [seconds] = (await once(this.#child, 'message')) as [number]
    return seconds
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.disconnect()
    await exited
  }
}

function spin(share: number): void {
  const end = performance.now() + Math.min(share, 1) * sliceMs
  while (performance.now() < end);
  setTimeout(() => spin(share), (1 - Math.min(share, 1)) * sliceMs)
}

async function run(task: Task): Promise<void> {
  process.on('disconnect', () => process.exit())
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.((user + system) / 1e6)
  })
  if ('busy' in task) {
    spin(task.busy)
    return
  }
  const attack = fairnessAttacks.find(({ name }) => name === task.attack)
  await attack?.run({ client: new ApiClient(task.address), endpointId: task.endpointId }, new AbortController().signal)
}

if (process.argv[1] === import.meta.filename) await run(JSON.parse(process.argv[2] ?? '') as Task)
