/** Control, and the network to it: calls of nodes get lost, and so do answers. Control itself is that of production. */
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import type { NodeIdentity } from '#control/fleet/node-access.ts'
import { AppError, errorTable } from '#errors.ts'
import { isoTimestamp } from '#lib/clock.ts'
import type { Files } from '#lib/files.ts'
import { isMarkerKind } from '#model/artifact.ts'
import { type ArtifactFile, type ArtifactFiles, listKeys, type SegmentCommit } from '#model/commit.ts'
import type { TakeOver } from '#model/node-protocol.ts'
import type { Principal } from '#model/principal.ts'
import type { ReceiptOutcome } from '#model/receipt.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { listMissingCommits } from '#store/commits/missing-commits.ts'
import { detachBinding } from '#store/endpoints/bindings.ts'
import { startCompaction } from '#store/jobs/compaction-jobs.ts'
import type { Store } from '#store/store.ts'
import type { Buckets } from './bucket.ts'
import { accountId, bindings, laterVersions, openDatabase, type Settings } from './control-database.ts'
import { type ControlServices, composeServices } from './control-services.ts'
import { type Delays, type Draw, type Kernel, Life } from './kernel.ts'
import { wrongCounters } from './view-laws.ts'

/** `cut`: the call does not arrive. `answer lost`: it does, and the caller learns nothing. */
export type NetworkFault = 'cut' | 'answer lost'

/** The node beside which the log of a lost node is delivered. */
export const rescuerId = '99999999-9999-4999-a999-999999999999'

/** The machine whose place another one may get. */
export const firstMachine = 'node'

const principal: Principal = { account_id: accountId, key_id: 'somebody', scopes: [], endpoint_ids: null }

export class SimulatedControl {
  /** By id, each as it was first reported. */
  readonly commits = new Map<string, SegmentCommit>()
  /** Ids that the database had when it was last read: control records commits from their markers, too. */
  stored: ReadonlySet<string> = new Set()
  /** Ids that were reported again with another content. */
  readonly conflicts: string[] = []
  /** Machines that do not reach it. */
  readonly cutOff = new Set<string>()
  readonly #store: Store
  readonly #takeOverAfterMs: number | null
  readonly #buckets: Buckets
  /** Ids of nodes that the database has. */
  readonly #joined = new Set<string>()
  /** Ids of nodes, by machine. */
  readonly ids = new Map<string, string>()
  /** By machine. */
  readonly #secrets = new Map<string, string>()
  readonly #kernel: Kernel
  readonly #delays: Delays
  readonly #fault: () => NetworkFault | undefined
  /** The machine that has adopted the log. */
  #owner: string | undefined
  #starts = 0
  readonly #attached = [...bindings]
  #process: Life
  #services: Promise<ControlServices>

  private constructor(
    store: Store,
    { takeOverAfterMs }: Settings,
    ...[buckets, kernel, delays, fault]: readonly [Buckets, Kernel, Delays, () => NetworkFault | undefined]
  ) {
    this.#store = store
    this.#takeOverAfterMs = takeOverAfterMs
    this.#buckets = buckets
    this.#kernel = kernel
    this.#delays = delays
    this.#fault = fault
    ;[this.#process, this.#services] = this.#start()
  }

  static async open(
    settings: Settings,
    ...rest: readonly [Buckets, Kernel, Delays, () => NetworkFault | undefined]
  ): Promise<SimulatedControl> {
    return new SimulatedControl(await openDatabase(settings), settings, ...rest)
  }

  #start(): [Life, Promise<ControlServices>] {
    this.#starts += 1
    const life = new Life(`control-${this.#starts}`, this.#kernel)
    // It reads markers, and uploads nothing.
    const stores = this.#buckets.storesFor(life, {} as Files)
    const services = composeServices(this.#store, life.clock, stores, this.#takeOverAfterMs)
    const started = async () => {
      await services.feed.start()
      for (const each of services.upkeep) await each.start()
      return services
    }
    return [life, started()]
  }

  /** Ends the process, with all that is not in the database, and starts it again. What it was asked gets no answer. */
  restart(): void {
    this.#process.end('killed')
    ;[this.#process, this.#services] = this.#start()
  }

  /** Whether another machine has adopted its log. */
  refuses(machine: string): boolean {
    return machine === firstMachine && this.#owner !== undefined
  }

  /** Whether the node has reached it once. */
  hasJoined(nodeId: string): boolean {
    return this.#joined.has(nodeId)
  }

  /** From then on only this machine is accepted. `from` is the machine whose disk it has a copy of. */
  takeOver(life: Life, machine: string, { nodeId, from }: { readonly nodeId: string; readonly from: string }): Promise<void> {
    const credential = printNodeCredential(nodeId, this.#secretOf(from))
    return this.#call(life, machine, 'take over', async ({ access }) => {
      // An attempt before may have succeeded, and its answer got lost.
      if (this.#owner === machine) return
      await access.adopt(await access.verify(credential), credential, { secret: this.#secretOf(machine) })
      this.#owner = machine
    })
  }

  /** Gives a lost node to this machine, which has made the secret. */
  giveLost(life: Life, machine: string, lost: TakeOver): Promise<void> {
    return this.#call(life, machine, 'give away', async ({ takeOvers, join }) => {
      // Only a node with its own place takes over.
      await join(rescuerId, this.#secretOf(rescuerId))
      await takeOvers.begin({ id: rescuerId, region: 'loc' }, lost)
      this.#owner = machine
      this.#secrets.set(machine, lost.secret)
    }).catch((error: unknown) => Promise.reject(toControlError(error)))
  }

  /** Whether control chooses who is lost. */
  get choosesLost(): boolean {
    return this.#takeOverAfterMs !== null
  }

  /** Asks for lost nodes, as the node beside the machine does. `running` are those that it has. */
  nextLost(life: Life, machine: string, running: readonly string[]): Promise<readonly string[]> {
    return this.#call(life, machine, 'lost nodes', async ({ takeOvers, join }) => {
      await join(rescuerId, this.#secretOf(rescuerId))
      const by = { id: rescuerId, region: 'loc' }
      return (await takeOvers.next(by, { node_id: rescuerId, running: [...running] })).lost_node_ids
    })
  }

  /** Nothing more of the lost node is here. */
  endTakeOver(life: Life, machine: string, lostId: string): Promise<void> {
    return this.#call(life, machine, 'end of the takeover', ({ takeOvers }) =>
      takeOvers.end({ id: rescuerId, region: 'loc' }, lostId),
    )
  }

  #secretOf(machine: string): string {
    const known = this.#secrets.get(machine) ?? newNodeSecret(this.#kernel.draw(`secret of ${machine}`).random)
    this.#secrets.set(machine, known)
    return known
  }

  async #call<T>(life: Life, machine: string, what: string, act: (services: ControlServices) => Promise<T>): Promise<T> {
    const drawn = this.#fault()
    const fault = this.cutOff.has(machine) ? 'cut' : drawn
    const result = await life.call(what, this.#delays, () => (fault === 'cut' ? undefined : this.#answer(act)))
    if (result === undefined || fault === 'answer lost') throw new ControlError(0, 'control cannot be reached')
    return result.value
  }

  /** Returns undefined if control ends before it answers. */
  async #answer<T>(act: (services: ControlServices) => Promise<T>): Promise<{ readonly value: T } | undefined> {
    const { ended } = this.#process
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const onEnd = () => resolve(undefined)
    ended.addEventListener('abort', onEnd, { once: true })
    const answer = this.#services.then(act).then((value) => ({ value }))
    return Promise.race([answer, promise]).finally(() => ended.removeEventListener('abort', onEnd))
  }

  /** The calls of a process. Those that it never makes are missing. */
  clientFor(life: Life, machine: string, nodeId: string): Control {
    const secret = this.#secretOf(machine)
    const credential = printNodeCredential(nodeId, secret)
    this.ids.set(machine, nodeId)
    const verify = async ({ access, join }: ControlServices): Promise<NodeIdentity> => {
      // A node joins at its first start.
      if (!this.refuses(machine) && !this.#joined.has(nodeId)) await join(nodeId, secret)
      this.#joined.add(nodeId)
      return access.verify(credential)
    }
    type Act<T> = (services: ControlServices, node: NodeIdentity) => Promise<T>
    const call = async <T>(what: string, signal: AbortSignal, act: Act<T>): Promise<T> => {
      signal.throwIfAborted()
      const answer = async (services: ControlServices) => act(services, await verify(services))
      const result = await this.#call(life, machine, what, answer).catch((error: unknown) =>
        Promise.reject(toControlError(error)),
      )
      signal.throwIfAborted()
      return result
    }
    const client: Partial<Control> = {
      fetchSnapshot: async (request, signal) => {
        const gone = AbortSignal.any([signal, life.ended])
        const lines = await call('snapshot', signal, ({ snapshots }) => snapshots.poll(request, gone))
        return lines && Buffer.concat(lines)
      },
      checkSnapshot: (request, signal) => call('check of the snapshot', signal, ({ snapshots }) => snapshots.isCurrent(request)),
      establishTrust: async () => undefined,
      register: (node, signal) => call('registration', signal, async ({ nodes }, own) => (await nodes.register(own, node)).epoch),
      reportUsage: (report, signal) => call('usage', signal, ({ nodes }) => nodes.reportUsage(copyOf(report))),
      reportKeyUse: (report, signal) => call('key use', signal, ({ nodes }) => nodes.reportKeyUse(copyOf(report))),
      reportSeries: (report, signal) =>
        call('series', signal, async ({ nodes }) => void (await nodes.reportSeries(copyOf(report)))),
      fetchCommittedSeqs: (id, signal) => call('committed seqs', signal, ({ snapshots }) => snapshots.committedSeqs(id)),
      fetchLastHeartbeat: (id, signal) => call('last heartbeat', signal, ({ nodes }) => nodes.lastHeartbeat(id)),
      sendHeartbeat: (heartbeat, signal) => call('heartbeat', signal, ({ nodes }) => nodes.heartbeat(heartbeat)),
      fetchDestination: (id, signal) => call('destination', signal, ({ nodes }, node) => nodes.getDestination(node, id)),
      findCommits: (ids, signal) => call('look-up of commits', signal, ({ commits }, node) => commits.find(node, ids)),
      sendCommits: (sent, signal) =>
        call('commits', signal, async ({ commits }, node) => {
          const answer = await commits.record(node, copyOf(sent))
          this.#note(sent)
          return answer
        }),
      reportLeftOnDisk: (report) =>
        this.#call(life, machine, 'left on disk', async ({ access, leftOnDisks }) =>
          leftOnDisks.record(await access.verifyFormer(credential), copyOf(report)),
        ),
      leaseUnits: (request, signal) => call('lease', signal, ({ jobLeases }, { region }) => jobLeases.lease(request, region)),
      reportUnits: (reports, signal) => call('report of units', signal, ({ jobLeases }) => jobLeases.report(copyOf(reports))),
      fetchScrubEndpoints: (request, signal) =>
        call('endpoints to scrub', signal, ({ scrubs }, node) => scrubs.endpoints(node, request)),
      fetchScrubCommits: (request, signal) =>
        call('commits to scrub', signal, ({ scrubs }, node) => scrubs.commits(node, request)),
      fetchScrubKnown: (request, signal) => call('known markers', signal, ({ scrubs }, node) => scrubs.known(node, request)),
    }
    return client as Control
  }

  #note(sent: readonly SegmentCommit[]): void {
    for (const commit of sent) {
      const known = this.commits.get(commit.id)
      if (known === undefined) this.commits.set(commit.id, commit)
      else if (JSON.stringify(known.artifacts) !== JSON.stringify(commit.artifacts)) this.conflicts.push(commit.id)
    }
  }

  /**
   * Merges what an endpoint has, and removes what was merged before, as if two hours had passed since then. A job that runs refuses another
   * one.
   */
  async compact(endpointId: string): Promise<void> {
    const { clock } = this.#process
    await this.#store.db
      .updateTable('compactions')
      .set(({ eb }) => ({ published_at: eb('published_at', '-', 2 * 3_600_000) }))
      .execute()
    const range = { period: 'day', to: isoTimestamp(clock.now() + 60_000) } as const
    await startCompaction(this.#store, { account_id: accountId, created_by: 'somebody' }, endpointId, range, clock.now()).catch(
      (error: unknown) => {
        if (!(error instanceof AppError)) throw error
      },
    )
  }

  /** Applies a version of a view to what was delivered without it, or to dead letters of the version before. */
  async startJob(draw: Draw): Promise<void> {
    const { endpoint_id, earlier_id, id } = draw.pick(laterVersions)
    const kind = draw.pick(['earlier', 'backfill', 'redrive'])
    const { jobs } = await this.#services
    const started =
      kind === 'redrive'
        ? jobs.redrive(principal, id, { endpoint_id, from_version: 1 })
        : jobs.backfill(principal, kind === 'earlier' ? earlier_id : id, { endpoint_id })
    await started.catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
    })
  }

  /** Detaches the next view of an endpoint, if it has one. */
  async detach(): Promise<void> {
    const next = this.#attached.shift()
    if (next === undefined) return
    const now = this.#process.clock.now()
    await inNewEpoch(this.#store, (db) => detachBinding(db, accountId, next.endpoint_id, next.id, now))
  }

  async readStored(): Promise<void> {
    const rows = await this.#store.db.selectFrom('commits').select('id').execute()
    this.stored = new Set(rows.map(({ id }) => id))
  }

  /** Whether a job runs, or waits until control has read what commits the buckets have. */
  async hasWork(): Promise<boolean> {
    const { db } = this.#store
    if ((await listMissingCommits(db)).length > 0) return true
    return (await db.selectFrom('jobs').select('id').where('status', '=', 'running').executeTakeFirst()) !== undefined
  }

  /** A machine keeps its id, as long as its disk has one. Returns what is wrong, in words. */
  findOtherNodes(): readonly string[] {
    const earlier = this.#joined.difference(new Set(this.ids.values()))
    return [...earlier].map((id) => `a machine joined as ${id} before`)
  }

  /** Returns the keys of the files that compactions made and control knows. */
  async listMergedFiles(): Promise<readonly string[]> {
    const rows = await this.#store.db.selectFrom('compactions').select('file').where('file', 'is not', null).execute()
    return rows.flatMap(({ file }) => (file === null ? [] : [(JSON.parse(file) as ArtifactFile).key]))
  }

  /** Compares the commits of the database with those that were reported. Returns what is wrong, in words. */
  async findWrongCommits(): Promise<readonly string[]> {
    const rows = await this.#store.db.selectFrom('commits').select(['id', 'records', 'artifacts']).execute()
    const stored = new Map(rows.map((row) => [row.id, row]))
    const wrong = [...this.commits.values()].filter(({ id, records, artifacts }) => {
      const row = stored.get(id)
      return row?.records !== records || listKeys(JSON.parse(row.artifacts)).join() !== listKeys(artifacts).join()
    })
    // Control reads commits from their markers, too.
    const keys = [...this.#buckets.objects.keys()]
    const unknown = rows.filter(({ id }) => !this.commits.has(id) && !keys.some((key) => key.endsWith(`/${id}.json`)))
    return [
      ...wrong.map(({ id }) => `the database has another commit ${id}`),
      ...unknown.map(({ id }) => `the database has the commit ${id}, which nobody reported or wrote`),
    ]
  }

  /** A backfill covers every segment that was sealed before it, also those that were delivered late. Returns what it left out. */
  async findLeftOut(): Promise<readonly string[]> {
    const { db } = this.#store
    const left = await db
      .selectFrom('jobs')
      .innerJoin('commits', 'commits.endpoint_id', 'jobs.endpoint_id')
      .leftJoin('commit_additions as additions', (join) =>
        join.onRef('additions.commit_id', '=', 'commits.id').onRef('additions.view_id', '=', 'jobs.view_id'),
      )
      .select(['commits.id', 'jobs.view_id', 'commits.applied_views'])
      .where('jobs.kind', '=', 'backfill')
      .whereRef('commits.sealed_at', '<', 'jobs.created_at')
      .where('additions.commit_id', 'is', null)
      .execute()
    return left.flatMap(({ id, view_id, applied_views }) =>
      applied_views?.includes(String(view_id)) === true ? [] : [`a backfill of ${view_id} left out ${id}`],
    )
  }

  /** Compares the counters of views with what the commits of the database say in their markers. */
  async findWrongCounters(): Promise<readonly string[]> {
    const { db } = this.#store
    const commits = await db.selectFrom('commits').select('artifacts').execute()
    const additions = await db.selectFrom('commit_additions').select('artifacts').execute()
    const outcomes = [...commits, ...additions].flatMap((each) => {
      const artifacts = Object.entries(JSON.parse(each.artifacts) as ArtifactFiles)
      const [, marker] = artifacts.find(([kind]) => isMarkerKind(kind)) ?? []
      const body = this.#buckets.objects.get(marker?.key ?? '')
      if (body === undefined) return []
      const { endpoint_id, views } = JSON.parse(body.toString()) as SegmentCommit
      return views.map((outcome) => ({ ...outcome, endpoint_id }))
    })
    return wrongCounters(await db.selectFrom('view_totals').selectAll().execute(), outcomes)
  }

  /** Returns what the API says of a receipt of the machine; undefined if it knows nothing of it. */
  async followReceipt(machine: string, endpointId: string, seq: number): Promise<ReceiptOutcome | undefined> {
    const { receipts } = await this.#services
    return await receipts.get(principal, endpointId, `${this.ids.get(machine)}-${seq}`).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      return undefined
    })
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** Returns what arrives: nothing is shared across the network. */
function copyOf<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

function toControlError(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  const { code, message, fence } = error
  return new ControlError(errorTable[code].status, message, { detail: message, fence })
}
