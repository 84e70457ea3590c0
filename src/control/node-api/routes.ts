import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { controlLimits } from '#model/limits.ts'
import { CommitBatch, CommitsRecorded, Heartbeat, Register, Registered, SnapshotQuery } from '#model/node-protocol.ts'
import { Snapshot } from '#model/snapshot.ts'
import { Empty } from '../routes/parameters.ts'
import type { Commits } from '../services/commits.ts'
import type { Nodes } from '../services/nodes.ts'
import type { Snapshots } from '../services/snapshots.ts'

export type NodeApiOptions = { readonly nodes: Nodes; readonly snapshots: Snapshots; readonly commits: Commits }

/** What nodes call, under `/internal/v1`: `model/node-protocol.ts`. */
export function nodeApiRoutes({ nodes, snapshots, commits }: NodeApiOptions): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post('/register', { config: { scope: 'node' }, schema: { body: Register, response: { 200: Registered } } }, (request) =>
      nodes.register(request.body),
    )

    app.get(
      '/snapshot',
      { config: { scope: 'node' }, schema: { querystring: SnapshotQuery, response: { 200: Snapshot, 204: Empty } } },
      async (request, reply) => {
        const gone = new AbortController()
        reply.raw.once('close', () => gone.abort())
        const snapshot = await snapshots.awaitNewer(request.query, gone.signal)
        return snapshot ?? reply.code(204).send()
      },
    )

    app.post(
      '/heartbeat',
      { config: { scope: 'node' }, schema: { body: Heartbeat, response: { 204: Empty } } },
      async (request, reply) => {
        await nodes.heartbeat(request.body)
        return reply.code(204).send()
      },
    )

    app.post(
      '/commits',
      {
        config: { scope: 'node' },
        bodyLimit: controlLimits.commitsBodyBytesMax,
        schema: { body: CommitBatch, response: { 200: CommitsRecorded } },
      },
      (request) => commits.record(request.body.commits),
    )
    done()
  }
}
