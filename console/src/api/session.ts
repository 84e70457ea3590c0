import { queryOptions } from '@tanstack/react-query'
import { ApiError, callSignIn, client, ok, type Schemas } from './client.ts'

export type Session = Schemas['Session']
export type Role = Session['accounts'][number]['role']

/** Session of the person who is signed in; null for nobody. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<Session | null> => {
    try {
      return await ok(client.GET('/v1/session'))
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null
      throw error
    }
  },
  staleTime: 60_000,
  refetchOnWindowFocus: true,
})

export function signInByLink(link: string, name: string | undefined): Promise<unknown> {
  return callSignIn('POST', '/sign-in/link', { link, ...(name === undefined ? {} : { name }) })
}

export function signInByEmail(email: string, password: string): Promise<unknown> {
  return callSignIn('POST', '/sign-in/email', { email, password })
}

export function signOut(): Promise<unknown> {
  return callSignIn('POST', '/sign-out', {})
}

export function setUp(settings: {
  readonly name?: string
  readonly email?: string
  readonly password?: string
}): Promise<unknown> {
  return callSignIn('POST', '/set-up', settings)
}
