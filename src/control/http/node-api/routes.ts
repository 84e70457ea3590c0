import type { X509Certificate } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { AppError } from '#errors.ts'
import { AssignableDestination } from '#model/destination.ts'
import { Id } from '#model/id.ts'
import {
  Adopt,
  CommitBatch,
  CommitLookup,
  CommitsFound,
  CommitsRecorded,
  DeliveredFound,
  DeliveredLookup,
  Heartbeat,
  HeartbeatRecorded,
  IssuedCertificate,
  Join,
  Joined,
  KeyUseRecorded,
  KeyUseReport,
  LastHeartbeat,
  nodeBodyPartsMax,
  Register,
  Registered,
  SeriesRecorded,
  SeriesReport,
  TakeOver,
  TakeOverEnd,
  TakeOverNext,
  TakeOvers,
  UsageReport,
  UsageTotals,
} from '#model/node-protocol.ts'
import { CommittedSeqs, SnapshotCheck, SnapshotChecked, SnapshotRequest } from '#model/snapshot-sections.ts'
import type { IssuedCertificates } from '../../fleet/issued-certificates.ts'
import type { NodeAccess } from '../../fleet/node-access.ts'
import type { Nodes } from '../../fleet/node-reports.ts'
import type { ReportedCommits } from '../../fleet/reported-commits.ts'
import type { Snapshots } from '../../fleet/snapshots.ts'
import type { TakeOvers as TakeOversService } from '../../fleet/take-overs.ts'
import { controlLimits } from '../../limits.ts'
import { bearerToken } from '../requests/authenticate.ts'

const ById = z.object({ id: Id })
const ByNode = z.strictObject({ node_id: Id })

export type NodeApiOptions = {
  readonly nodes: Nodes
  readonly snapshots: Snapshots
  readonly commits: ReportedCommits
  readonly certificates: IssuedCertificates
}

/** The way in for a node without a credential. */
export function joinRoute(access: NodeAccess): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/join', { schema: { body: Join, response: { 200: Joined } } }, (request) =>
      access.join(request.joinGrant, request.body),
    )
    done()
  }
}

/** For the machine that adopts the log of a node. */
export function adoptRoute(access: NodeAccess): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/adopt', { schema: { body: Adopt } }, async (request, reply) => {
      await access.adopt(request.node, bearerToken(request), request.body)
      return reply.code(204).send()
    })
    done()
  }
}

/** For a node that delivers the copies of another one, whose machine is lost. */
export function takeOverRoutes(takeOvers: TakeOversService): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/take-over', { schema: { body: TakeOver } }, async (request, reply) => {
      await takeOvers.begin(request.node, request.body)
      return reply.code(204).send()
    })
    app.post('/take-over/next', { schema: { body: TakeOverNext, response: { 200: TakeOvers } } }, (request) =>
      takeOvers.next(request.node, request.body),
    )
    app.post('/take-over/end', { schema: { body: TakeOverEnd } }, async (request, reply) => {
      await takeOvers.end(request.node, request.body.lost_node_id)
      return reply.code(204).send()
    })
    done()
  }
}

/** For a node that knows only the pin of the root: it cannot verify this server yet, and presents nothing. */
export function rootRoute(rootCertificate: () => X509Certificate | undefined): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/ca', async (_request, reply) => {
      const root = rootCertificate()
      if (root === undefined) throw new AppError('not_found', 'the certificate of control has no root of its own')
      return reply.type('application/pem-certificate-chain').send(root.toString())
    })
    done()
  }
}

/** The node API under `/internal/v1`: `model/node-protocol.ts`. */
export function nodeApiRoutes({ nodes, snapshots, commits, certificates }: NodeApiOptions): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/register', { schema: { body: Register, response: { 200: Registered } } }, (request) =>
      nodes.register(request.node, request.body),
    )

    app.post('/snapshot', { config: { isLongPoll: true }, schema: { body: SnapshotRequest } }, async (request, reply) => {
      const gone = new AbortController()
      reply.raw.once('close', () => gone.abort())
      const lines = await snapshots.poll(request.body, gone.signal)
      if (lines === undefined) return reply.code(204).send()
      const bytes = lines.reduce((sum, line) => sum + line.byteLength, 0)
      const [only, ...others] = lines
      reply.header('content-type', 'application/x-ndjson').header('content-length', bytes)
      // Streamed: the lines are shared by many nodes, and a copy for each of them would be large.
      return reply.send(others.length === 0 ? only : Readable.from(lines))
    })

    app.post('/snapshot/check', { schema: { body: SnapshotCheck, response: { 200: SnapshotChecked } } }, async (request) => ({
      is_current: await snapshots.isCurrent(request.body),
    }))

    app.get('/committed-seqs', { schema: { querystring: ByNode, response: { 200: CommittedSeqs } } }, (request) =>
      snapshots.committedSeqs(request.query.node_id),
    )

    app.post(
      '/heartbeat',
      {
        bodyLimit: controlLimits.heartbeatBodyBytesMax,
        config: { bodyPartsMax: nodeBodyPartsMax.heartbeat },
        schema: { body: Heartbeat, response: { 200: HeartbeatRecorded } },
      },
      (request) => nodes.heartbeat(request.body),
    )

    app.get('/heartbeat', { schema: { querystring: ByNode, response: { 200: LastHeartbeat } } }, (request) =>
      nodes.lastHeartbeat(request.query.node_id),
    )

    addReports(app, nodes)

    app.get('/certificate', { schema: { response: { 200: IssuedCertificate } } }, (request) =>
      certificates.forRegion(request.node.region),
    )

    app.get('/destinations/:id', { schema: { params: ById, response: { 200: AssignableDestination } } }, (request) =>
      nodes.getDestination(request.node, request.params.id),
    )

    app.post(
      '/commits',
      {
        bodyLimit: controlLimits.commitsBodyBytesMax,
        config: { bodyPartsMax: nodeBodyPartsMax.commits },
        schema: { body: CommitBatch, response: { 200: CommitsRecorded } },
      },
      (request) => commits.record(request.node, request.body.commits),
    )

    app.post('/commits/lookup', { schema: { body: CommitLookup, response: { 200: CommitsFound } } }, (request) =>
      commits.find(request.node, request.body.ids),
    )

    app.post('/commits/delivered', { schema: { body: DeliveredLookup, response: { 200: DeliveredFound } } }, (request) =>
      commits.findDelivered(request.node, request.body.segments),
    )
    done()
  }
}

type App = Parameters<FastifyPluginCallbackZod>[0]

function addReports(app: App, nodes: NodeApiOptions['nodes']): void {
  app.post(
    '/usage',
    { config: { bodyPartsMax: nodeBodyPartsMax.usage }, schema: { body: UsageReport, response: { 200: UsageTotals } } },
    (request) => nodes.reportUsage(request.body),
  )

  app.post(
    '/key-use',
    {
      config: { bodyPartsMax: nodeBodyPartsMax.keyUse },
      schema: { body: KeyUseReport, response: { 200: KeyUseRecorded } },
    },
    (request) => nodes.reportKeyUse(request.body),
  )

  app.post(
    '/series',
    { config: { bodyPartsMax: nodeBodyPartsMax.series }, schema: { body: SeriesReport, response: { 200: SeriesRecorded } } },
    (request) => nodes.reportSeries(request.body),
  )
}
