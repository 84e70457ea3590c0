// Runs before the first paint and before the console: the page must not wait for its scripts to ask for its data.
{
  // Or a page would show the other theme for a moment.
  const theme = localStorage.getItem('inlet-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme

  // The first calls of the first screen; `src/api/asked-ahead.ts` gives each answer to the call that needs it.
  const asked = new Map()
  const ask = (path, account) => {
    const response = fetch(path, { headers: { accept: 'application/json', 'inlet-account': account } })
    // The call that takes it reports the failure.
    response.catch(() => undefined)
    asked.set(`${account} ${path}`, response)
  }
  const [, first, named, ...rest] = location.pathname.split('/')
  if (first === 'sign-in') {
    ask('/auth/ways', 'none')
  } else {
    ask('/v1/session', 'none')
    const account = first === 'in' ? named : first === '' ? localStorage.getItem('inlet-account') : undefined
    if (account && rest.join('') === '') ask('/v1/endpoints?limit=200', account)
  }
  window.inletAskedAhead = asked
}
