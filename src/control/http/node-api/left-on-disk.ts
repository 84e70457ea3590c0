import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { LeftOnDisk, LeftRecorded } from '#model/left-on-disk.ts'
import { nodeBodyPartsMax } from '#model/node-protocol.ts'
import type { LeftOnDisks } from '../../fleet/left-on-disk.ts'
import { controlLimits } from '../../limits.ts'

/** For a machine whose credential is refused, because another one has its place. It may say this, and nothing else. */
export function leftOnDiskRoute(disks: LeftOnDisks): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.post(
      '/left-on-disk',
      {
        bodyLimit: controlLimits.commitsBodyBytesMax,
        config: { bodyPartsMax: nodeBodyPartsMax.leftOnDisk },
        schema: { body: LeftOnDisk, response: { 200: LeftRecorded } },
      },
      (request) => disks.record(request.formerMachine, request.body),
    )
    done()
  }
}
