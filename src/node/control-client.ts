import type { z } from 'zod'
import { type Fence, isFence } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { type HttpResponse, sendRequest } from '#lib/http.ts'
import { parseJson } from '#lib/json.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { AssignableDestination } from '#model/destination.ts'
import { type LeaseRequest, Leases, type UnitReports, UnitsReported } from '#model/job-protocol.ts'
import { type LeftOnDisk, LeftRecorded } from '#model/left-on-disk.ts'
import {
  type Adopt,
  CommitsFound,
  CommitsRecorded,
  DeliveredFound,
  type DeliveredLookup,
  type Heartbeat,
  HeartbeatRecorded,
  IssuedCertificate,
  type Join,
  Joined,
  KeyUseRecorded,
  type KeyUseReport,
  LastHeartbeat,
  type Register,
  Registered,
  SeriesRecorded,
  type SeriesReport,
  type TakeOver,
  type TakeOverEnd,
  type TakeOverNext,
  TakeOvers,
  type UsageReport,
  UsageTotals,
} from '#model/node-protocol.ts'
import {
  ScrubCommits,
  type ScrubCommitsRequest,
  ScrubEndpoints,
  type ScrubEndpointsRequest,
  ScrubKnown,
  type ScrubKnownRequest,
} from '#model/scrub.ts'
import { CommittedSeqs, type SnapshotCheck, SnapshotChecked, type SnapshotRequest } from '#model/snapshot-sections.ts'
import { ControlRoot, type ControlRootOptions, UnknownRootError } from './control-root.ts'
import type { NodeCredential } from './credential.ts'

/** A call to control failed. `status` is 0 if control could not be reached. */
export class ControlError extends Error {
  override readonly name = 'ControlError'
  readonly status: number
  /** Explanation that control gave. */
  readonly detail: string
  /** Why control refuses this node until an operator does something. */
  readonly fence: Fence | undefined

  constructor(
    status: number,
    message: string,
    {
      detail = '',
      fence,
      cause,
    }: { readonly detail?: string; readonly fence?: Fence | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.status = status
    this.detail = detail
    this.fence = fence
  }
}

/** How long one call may take if nobody says otherwise. */
export const controlTimeoutMs = 10_000

export type ControlClientOptions = {
  readonly url: string
  /** Credential of this node. It is read again after a call that control rejected because of it. */
  readonly credential: Pick<NodeCredential, 'token' | 'reload'>
  /** Roots that may have signed the certificate of control. Undefined: those that Node trusts. */
  readonly root?: Pick<ControlRoot, 'ca' | 'reload' | 'establish'> | undefined
  /** How long one call may take, in addition to the wait of a long poll. */
  readonly timeoutMs?: number
  readonly clock: Clock
}

/** Control, as a node calls it. Each call is one attempt; the caller retries. */
export type Control = Pick<ControlClient, keyof ControlClient>

/** Calls control by HTTP, at `/internal/v1`. */
export class ControlClient {
  readonly #options: ControlClientOptions

  constructor(options: ControlClientOptions) {
    this.#options = options
  }

  /** Throws UserError if the certificate of the CA cannot be read. */
  static async open({
    caFile,
    rootFile,
    pin = null,
    files,
    ...options
  }: Omit<ControlClientOptions, 'root'> & ControlRootOptions): Promise<ControlClient> {
    return new ControlClient({ ...options, root: await ControlRoot.open({ caFile, rootFile, pin, files, clock: options.clock }) })
  }

  /** Fetches the root certificate that the join token pins, if this node does not have it. To be called before anything else. */
  async establishTrust(signal: AbortSignal): Promise<void> {
    const { url, root, timeoutMs = controlTimeoutMs } = this.#options
    try {
      await root?.establish(url, timeoutMs, signal)
    } catch (error) {
      if (error instanceof UnknownRootError) throw error
      throw unreachable(url, error)
    }
  }

  /** Asks for the id of this node. Needs the secret of a join token, or the join secret, not a credential. */
  async join(body: Join, joinSecret: string, signal: AbortSignal): Promise<Joined> {
    return this.#json(Joined, 'POST', 'join', { body, signal, token: joinSecret })
  }

  /** Replaces the credential of this node, whose log is on another machine now. Needs the one before. */
  async adopt(body: Adopt, credential: string, signal: AbortSignal): Promise<void> {
    await this.#call('POST', 'adopt', { body, signal, token: credential })
  }

  /** Makes this node the one that delivers for a node whose machine is lost. */
  async takeOver(body: TakeOver, signal: AbortSignal): Promise<void> {
    await this.#call('POST', 'take-over', { body, signal })
  }

  /** Returns the lost nodes that this one shall take over. */
  async fetchTakeOvers(body: TakeOverNext, signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#json(TakeOvers, 'POST', 'take-over/next', { body, signal })).lost_node_ids
  }

  async endTakeOver(body: TakeOverEnd, signal: AbortSignal): Promise<void> {
    await this.#call('POST', 'take-over/end', { body, signal })
  }

  async register(body: Register, signal: AbortSignal): Promise<number> {
    return (await this.#json(Registered, 'POST', 'register', { body, signal })).epoch
  }

  /** Returns the lines of sections that differ from the node's copy, or undefined if nothing changed within `wait_ms`. */
  async fetchSnapshot(request: SnapshotRequest, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const response = await this.#call('POST', 'snapshot', { body: request, signal, waitMs: request.wait_ms })
    return response.status === 204 ? undefined : response.body
  }

  /** Returns whether the sections of a process are the newest. */
  async checkSnapshot(body: SnapshotCheck, signal: AbortSignal): Promise<boolean> {
    return (await this.#json(SnapshotChecked, 'POST', 'snapshot/check', { body, signal })).is_current
  }

  /** Returns the highest committed seq of each endpoint on this node. */
  async fetchCommittedSeqs(nodeId: string, signal: AbortSignal): Promise<CommittedSeqs> {
    return this.#json(CommittedSeqs, 'GET', `committed-seqs?node_id=${nodeId}`, { signal })
  }

  async fetchLastHeartbeat(nodeId: string, signal: AbortSignal): Promise<LastHeartbeat> {
    return this.#json(LastHeartbeat, 'GET', `heartbeat?node_id=${nodeId}`, { signal })
  }

  async sendHeartbeat(body: Heartbeat, signal: AbortSignal): Promise<HeartbeatRecorded> {
    return this.#json(HeartbeatRecorded, 'POST', 'heartbeat', { body, signal })
  }

  /** Returns what all nodes accepted, for the accounts and days of the report. */
  async reportUsage(body: UsageReport, signal: AbortSignal): Promise<UsageTotals> {
    return this.#json(UsageTotals, 'POST', 'usage', { body, signal })
  }

  async reportKeyUse(body: KeyUseReport, signal: AbortSignal): Promise<KeyUseRecorded> {
    return this.#json(KeyUseRecorded, 'POST', 'key-use', { body, signal })
  }

  async reportSeries(body: SeriesReport, signal: AbortSignal): Promise<void> {
    await this.#json(SeriesRecorded, 'POST', 'series', { body, signal })
  }

  /** Returns the ids of the commits that are now durable in the store, and how many of them are new there. */
  async sendCommits(commits: readonly SegmentCommit[], signal: AbortSignal): Promise<z.output<typeof CommitsRecorded>> {
    return this.#json(CommitsRecorded, 'POST', 'commits', { body: { commits }, signal })
  }

  /** Returns the newest certificate for the region of this node. */
  async fetchCertificate(signal: AbortSignal): Promise<IssuedCertificate> {
    return this.#json(IssuedCertificate, 'GET', 'certificate', { signal })
  }

  /** Returns what delivery needs to write to a destination of any account. */
  async fetchDestination(id: string, signal: AbortSignal): Promise<AssignableDestination> {
    return this.#json(AssignableDestination, 'GET', `destinations/${id}`, { signal })
  }

  /** Says what is on this disk, whose node control refuses, because another machine has its place. */
  async reportLeftOnDisk(body: LeftOnDisk, signal: AbortSignal): Promise<LeftRecorded> {
    return this.#json(LeftRecorded, 'POST', 'left-on-disk', { body, signal })
  }

  /** Returns those of the commits that are durable in the store. */
  async findCommits(ids: readonly string[], signal: AbortSignal): Promise<CommitsFound> {
    return this.#json(CommitsFound, 'POST', 'commits/lookup', { body: { ids }, signal })
  }

  /** Returns those of the segments that are delivered. Control of an earlier release answers 404. */
  async findDelivered(segments: DeliveredLookup['segments'], signal: AbortSignal): Promise<DeliveredFound> {
    return this.#json(DeliveredFound, 'POST', 'commits/delivered', { body: { segments }, signal })
  }

  async fetchScrubEndpoints(body: ScrubEndpointsRequest, signal: AbortSignal): Promise<ScrubEndpoints> {
    return this.#json(ScrubEndpoints, 'POST', 'scrub/endpoints', { body, signal })
  }

  async fetchScrubCommits(body: ScrubCommitsRequest, signal: AbortSignal): Promise<ScrubCommits> {
    return this.#json(ScrubCommits, 'POST', 'scrub/commits', { body, signal })
  }

  async fetchScrubKnown(body: ScrubKnownRequest, signal: AbortSignal): Promise<ScrubKnown> {
    return this.#json(ScrubKnown, 'POST', 'scrub/known', { body, signal })
  }

  async leaseUnits(body: LeaseRequest, signal: AbortSignal): Promise<Leases> {
    return this.#json(Leases, 'POST', 'jobs/lease', { body, signal })
  }

  async reportUnits(body: UnitReports, signal: AbortSignal): Promise<UnitsReported> {
    return this.#json(UnitsReported, 'POST', 'jobs/report', { body, signal })
  }

  async #json<T extends z.ZodType>(schema: T, method: string, path: string, request: Request): Promise<z.output<T>> {
    const response = await this.#call(method, path, request)
    return schema.parse(JSON.parse(response.body.toString()))
  }

  async #call(method: string, path: string, { body, signal, token, waitMs = 0 }: Request): Promise<HttpResponse> {
    const { url, root, credential, timeoutMs = controlTimeoutMs, clock } = this.#options
    let response: HttpResponse
    try {
      response = await sendRequest(`${url}/internal/v1/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token ?? credential.token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ca: root?.ca,
        signal: AbortSignal.any([signal, clock.timeout(waitMs + timeoutMs)]),
      })
    } catch (error) {
      await root?.reload()
      throw unreachable(url, error)
    }
    const { status, body: answer } = response
    if (status >= 200 && status < 300) return response
    if (status === 401 && token === undefined) await credential.reload()
    const { detail, fence } = readProblem(answer)
    throw new ControlError(status, `control rejected ${method} ${path.split('?')[0]}: ${status} ${detail}`, { detail, fence })
  }
}

const unknownCa = 'set INLET_CONTROL_CA_FILE to the certificate of the CA that signed the one of control'
/** Advice by the code of OpenSSL: the chain ends in no root that this node trusts, or is not valid now. */
const adviceByCode: ReadonlyMap<string, string> = new Map([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', unknownCa],
  ['SELF_SIGNED_CERT_IN_CHAIN', unknownCa],
  ['UNABLE_TO_GET_ISSUER_CERT', unknownCa],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', unknownCa],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', unknownCa],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'set INLET_CONTROL_URL to an address that the certificate of control is valid for'],
  ['CERT_NOT_YET_VALID', 'set the clock of this machine by NTP'],
  ['CERT_HAS_EXPIRED', 'renew the certificate of control, or set the clock of this machine by NTP'],
])

type Request = {
  readonly body?: unknown
  readonly signal: AbortSignal
  readonly waitMs?: number
  /** Instead of the credential. */
  readonly token?: string
}

function unreachable(url: string, cause: unknown): ControlError {
  const advice = cause instanceof Error && 'code' in cause ? adviceByCode.get(String(cause.code)) : undefined
  return new ControlError(0, `control at ${url} cannot be reached${advice === undefined ? '' : ` (${advice})`}`, { cause })
}

/** Returns what a problem (RFC 7807) says, or the beginning of another response: that of a proxy. */
function readProblem(answer: Buffer): { readonly detail: string; readonly fence?: Fence } {
  const text = answer.toString()
  const problem = parseJson(text)
  if (typeof problem !== 'object' || problem === null) return { detail: text.slice(0, 500) }
  const { detail, fence } = problem as { readonly detail?: unknown; readonly fence?: unknown }
  return { detail: typeof detail === 'string' ? detail : text.slice(0, 500), ...(isFence(fence) ? { fence } : {}) }
}
