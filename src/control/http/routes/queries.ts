import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { queryLimits } from '#model/limits.ts'
import { QueryResult, RunQuery } from '#model/query.ts'
import type { Queries } from '../../resources/queries.ts'
import { problem } from '../openapi/openapi.ts'
import { RequestShares } from '../requests/request-shares.ts'
import { sendJson, signalDisconnect } from './own-process.ts'
import { resource } from './resource.ts'

export function queryRoutes(queries: Queries): FastifyPluginCallbackZod {
  return resource('Query', (operation) => {
    const shares = new RequestShares({ what: 'run queries', perAccountMax: queryLimits.perAccountMax })

    operation('POST /query', 'runQuery', 'query', {
      summary: 'Run SQL over what was delivered; nothing is saved',
      body: RunQuery,
      response: { 200: QueryResult, 404: problem('the account has no such endpoint') },
      shares,
      run: async (request, reply) => sendJson(reply, await queries.run(request.principal, request.body, signalDisconnect(reply))),
    })
  })
}
