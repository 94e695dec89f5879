"""What is built on certificates: training, search for noise, attacks, reports and the explorer."""
