import type { PutObjectCommand } from '@aws-sdk/client-s3'

/** Makes the signature cover the content of the file, whose hash the SDK cannot know for a stream. */
export function signPayload(command: PutObjectCommand, sha256: string): void {
  command.middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request as { readonly headers: Record<string, string> }
      headers['x-amz-content-sha256'] = sha256
      return next(args)
    },
    { step: 'build', name: 'signPayload' },
  )
}
