import { basename } from 'node:path/posix'
import type { Readable } from 'node:stream'
import { create as contentDisposition } from 'content-disposition'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AppError } from '#errors.ts'

/** Provided by the composition: `objects/directory.ts`. */
export type Downloads = {
  /** Returns the object that a signed URL names, or why the URL is rejected. */
  readonly verify: (url: string) => { readonly bucket: string; readonly key: string } | 'invalid' | 'expired'
  /** Undefined if there is no such object. */
  readonly read: (name: { readonly bucket: string; readonly key: string }) => Promise<Download | undefined>
}

type Download = { readonly bytes: number; readonly stream: Readable }

/** Downloads from the embedded object store by presigned URL. Anyone who has the URL may download. */
export function objectRoutes({ verify, read }: Downloads): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/objects/*', { config: { scope: 'public' }, exposeHeadRoute: false }, async (request, reply) => {
      const name = verify(request.url)
      if (name === 'invalid') throw new AppError('forbidden', 'the signature of the URL is not valid')
      if (name === 'expired') throw new AppError('forbidden', 'the URL has expired; list the files again to get a new one')
      const download = await read(name)
      if (download === undefined) throw new AppError('not_found', 'the object no longer exists')
      const fileName = basename(name.key)
      return reply
        .header('content-type', fileName.endsWith('.gz') ? 'application/gzip' : 'application/octet-stream')
        .header('content-length', download.bytes)
        .header('content-disposition', contentDisposition(fileName))
        .header('cache-control', 'private, no-store')
        .send(download.stream)
    })
    done()
  }
}
