import { basename } from 'node:path/posix'
import type { Readable } from 'node:stream'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AppError } from '#errors.ts'

/** Declared here, given by the composition: `objects/directory.ts`. */
export type Downloads = {
  /** What a signed address names; otherwise why not. */
  readonly verify: (url: string) => { readonly bucket: string; readonly key: string } | 'invalid' | 'expired'
  /** Undefined where there is none. */
  readonly read: (name: { readonly bucket: string; readonly key: string }) => Promise<Download | undefined>
}

type Download = { readonly bytes: number; readonly stream: Readable }

/** Where presigned addresses of the embedded object store lead. Whoever has one may download: that is what they are for. */
export function objectRoutes({ verify, read }: Downloads): FastifyPluginCallbackZod {
  return (app, _options, done) => {
    app.get('/objects/*', { config: { scope: 'public' }, exposeHeadRoute: false }, async (request, reply) => {
      const name = verify(request.url)
      if (name === 'invalid') throw new AppError('forbidden', 'the address is not one that was signed here')
      if (name === 'expired') throw new AppError('forbidden', 'the address has expired; ask for a new one')
      const download = await read(name)
      if (download === undefined) throw new AppError('not_found', 'the object is not there any more')
      const fileName = basename(name.key)
      return reply
        .header('content-type', fileName.endsWith('.gz') ? 'application/gzip' : 'application/octet-stream')
        .header('content-length', download.bytes)
        .header('content-disposition', disposition(fileName))
        .header('cache-control', 'private, no-store')
        .send(download.stream)
    })
    done()
  }
}

/** RFC 6266 §5, with the name in ASCII for those who read no other. */
function disposition(fileName: string): string {
  const ascii = fileName.replace(/[^\w.-]/g, '_')
  const encoded = encodeURIComponent(fileName).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
