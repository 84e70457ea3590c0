/** The composition of the console. */
import './design/base.css'
import { CSPProvider } from '@base-ui/react/csp-provider'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/client.ts'
import { isPassing, retryInterval } from './api/intervals.ts'
import { sessionQuery } from './api/session.ts'
import { Toasts } from './design/toast.tsx'
import { createAppRouter } from './router.tsx'

const triesMax = 2

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: askAgainWhoIsHere }),
  mutationCache: new MutationCache({ onError: askAgainWhoIsHere }),
  defaultOptions: {
    queries: {
      retry: (failures, error) => failures < triesMax && isPassing(error),
      refetchInterval: retryInterval,
      refetchIntervalInBackground: false,
    },
  },
})
const router = createAppRouter(queries)
const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content

const root = document.getElementById('app')
if (root === null) throw new Error('the page has no #app')
createRoot(root).render(
  <StrictMode>
    <CSPProvider nonce={nonce}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
        <Toasts />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
)

/** A refused call may mean that the session ended elsewhere, or that somebody has another role now. */
function askAgainWhoIsHere(error: Error): void {
  if (!(error instanceof ApiError && (error.status === 401 || error.status === 403))) return
  // There a refusal is about what was typed.
  if (router.state.location.pathname === '/sign-in') return
  const ask = async () => {
    // Without a session each screen leads to the sign-in, and back.
    if ((await queries.fetchQuery({ ...sessionQuery, staleTime: 0 })) === null) await router.invalidate()
  }
  // If control cannot be asked, the screen shows the refusal.
  ask().catch(() => undefined)
}
