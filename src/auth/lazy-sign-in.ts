import { providerId, providerUnreachable, type SignIn, type SignInOptions } from './sign-in.ts'

/**
 * The library is large, and a control process that nobody looks at never needs it: it is loaded at first use. The provider is asked
 * what it is when somebody comes by it, so that sign-in by other ways works while it does not respond.
 */
export function createSignIn(options: SignInOptions): SignIn {
  const open = keepUnlessFailed(() => openLibrary({ ...options, provider: null }))
  const openWithProvider = options.provider === null ? open : keepUnlessFailed(() => openLibrary(options))
  return {
    handle: async (request) => {
      if (!isOfProvider(request)) return (await open()).handle(request)
      return withinTime(options, async () => (await openWithProvider()).handle(request))
    },
    find: async (cookie) => (await open()).find(cookie),
  }
}

async function openLibrary(options: SignInOptions): Promise<SignIn> {
  const { openSignIn } = await import('./sign-in-library.ts')
  return openSignIn(options)
}

/** The library waits for a provider without end. Throws unavailable after `providerTimeoutMs`. */
async function withinTime<T>({ clock, provider, providerTimeoutMs, warnings }: SignInOptions, run: () => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = clock.setTimer(() => {
    warnings.warn('sign-in: timeout', { issuer: provider?.issuer }, 'sign-in: provider did not respond in time')
    reject(providerUnreachable(provider?.name ?? 'the provider'))
  }, providerTimeoutMs)
  try {
    return await Promise.race([run(), promise])
  } finally {
    cancel()
  }
}

function isOfProvider({ url }: Request): boolean {
  const { pathname } = new URL(url)
  return ['/auth/sign-in/social', '/auth/link-social', `/auth/callback/${providerId}`].includes(pathname)
}

/** Runs `open` once; again at the next call if it failed. */
function keepUnlessFailed<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
}
